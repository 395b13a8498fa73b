"""Risks, cuts and minorants as arrays, and the answers of all sites as one, whoever is away."""

from __future__ import annotations

import numpy as np
import pytest

from models.methods.answer_arrays import cut_answer, cut_shapes, minorant, minorant_arrays, present, stacked
from models.methods.guard import Minorant
from models.worst_case.risk import RiskCut
from tests.models.cuts.told import problem_of

SLOPE, SWING = np.array([1.0, -2.0, 0.5]), np.array([0.1, 0.0])


@pytest.mark.parametrize("swing", [None, SWING])
def test_a_cut_is_told_with_its_height_apart_from_the_risk(swing: np.ndarray | None) -> None:
    """Where a solver with a tolerance was asked the two differ; a swing is there where there is a box."""
    found = cut_answer(RiskCut(2.0, 1.75, SLOPE, 0.3, swing))
    assert (found["risk"], found["cut_height"], found["norm_weight"]) == (2.0, 1.75, 0.3)
    assert (found["slope"] == SLOPE).all() and ("swing" in found) is (swing is not None)
    shapes = cut_shapes(3, 0 if swing is None else 2)
    assert {name: array.shape for name, array in found.items()} == shapes
    if swing is not None:
        assert (found["swing"] == SWING).all()


@pytest.mark.parametrize("swing", [None, SWING])
def test_a_minorant_is_told_with_all_its_parts(swing: np.ndarray | None) -> None:
    found = minorant(0.7, SLOPE, 0.3, swing)
    same = minorant_arrays(Minorant(0.7, SLOPE, 0.3, swing, rows=np.ones(9), above=0.5))
    assert set(found) == set(same) == {
        "minorant_offset", "minorant_slope", "minorant_norm_weight", *(() if swing is None else ("minorant_swing",))
    }
    assert found["minorant_offset"] == 0.7 and found["minorant_norm_weight"] == 0.3
    assert (found["minorant_slope"] == SLOPE).all() and (swing is None or (found["minorant_swing"] == swing).all())


def test_answers_stand_in_the_order_of_the_sites_with_what_is_known_of_who_is_away() -> None:
    """Whatever order they came in; nothing is known: 0."""
    problem = problem_of()
    answers = {"d": {"floor": np.array(4.0)}, "b": {"floor": np.array(2.0)}, "a": {"floor": np.array(1.0)}}
    assert present(problem, answers).tolist() == [True, True, False, True, False]
    assert stacked(problem, answers, "floor").tolist() == [1.0, 2.0, 0.0, 4.0, 0.0]
    assert stacked(problem, answers, "floor", np.arange(5.0) + 10.0).tolist() == [1.0, 2.0, 12.0, 4.0, 14.0]
    rows = {name: {"local": np.full(2, float(place))} for place, name in enumerate("ace")}
    known = -np.ones((5, 2)) * np.arange(5.0)[:, None]
    assert stacked(problem, rows, "local", known)[:, 0].tolist() == [0.0, -1.0, 1.0, -3.0, 2.0]
