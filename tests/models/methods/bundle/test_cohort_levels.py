"""Questions at levels between two projections: what they rest on, and how many programs they save."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from models.cuts.cut_model import ModelPoint
from models.cuts.cut_program import minimise, project
from models.geometry.norms import DUAL_NORM, dual_norms
from models.methods.bundle import asked_level, cohort
from models.methods.bundle.cohort_levels import between, solved_levels
from models.problem import RobustSpec, SiteProblem
from models.simulation.federation import train
from tests.models.cuts.test_cut_program import MODELS, drawn


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8))
def test_every_level_is_projected_on_or_lies_between_two_that_are(levels: list[float]) -> None:
    solved = solved_levels(levels)
    at = set(solved)
    assert at <= set(levels)
    assert len(solved) <= len(levels) // 2 + 1
    assert all(min(at) <= level <= max(at) for level in levels)
    assert solved == sorted(solved)


@settings(max_examples=40, deadline=None)
@given(**(MODELS | {"swings": st.just(False), "ball": st.just(None)}))
def test_a_question_between_two_projections_is_a_step_from_the_centre_along_its_multipliers(**of: Any) -> None:
    model, centre = drawn(**of)
    lowest, height = model.value(minimise(model, centre).point), model.value(centre)
    assume(height - lowest > 0.05)
    levels = [lowest + share * (height - lowest) for share in (0.3, 0.1, 0.35, 0.9, 0.12, 0.7)]
    at = {level: project(model, centre, level) for level in solved_levels(levels)}
    assert len(at) == 4
    most = float(np.maximum(model.floor, max(model.norm_weight, default=0.0)) @ model.site_weights)
    for level in levels:
        found = between(at, level)
        assert model.value(found.point) <= level + 1e-7 * (1.0 + abs(height))
        # What is left beside the cuts' slopes is the norm's: none in the intercept, and no more than its weights.
        left = (centre - found.point) - found.level_price * (found.multipliers @ model.slope)
        assert np.abs(left[model.n_features :]).max(initial=0.0) <= 1e-6 * (1.0 + found.level_price)
        norm = float(dual_norms(left[None, : model.n_features], DUAL_NORM[model.transport_norm])[0])
        assert norm <= found.level_price * most * (1 + 1e-6) + 1e-6
        assert found.mixture == pytest.approx(model.site_weights, abs=1e-6)


def test_between_two_levels_that_the_centre_meets_the_centre_is_asked() -> None:
    point = ModelPoint(np.ones(2), np.zeros(1), 0.0, np.ones(1))
    assert between({0.0: point, 1.0: point}, 0.5) is point


def test_many_weights_take_four_projections_for_six_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    sites = {}
    for name in ("a", "b", "c"):
        rows = random.uniform(size=(30, 24))
        sites[name] = SiteProblem(rows, np.where(rows[:, 0] > rows[:, 1], 1.0, -1.0), RobustSpec(1e-2, 1.0, "l2"))
    counted: list[float] = []

    def counting(*given: Any, **terms: Any) -> ModelPoint:
        counted.append(given[2])
        return project(*given, **terms)

    monkeypatch.setattr(asked_level, "project", counting)
    monkeypatch.setattr(cohort, "_WIDE", 25)
    few = train(sites, method="cohort-bundle", gap=1e-3, max_rounds=40)
    per_round = len(counted) / few.n_rounds
    assert few.certificate.gap <= 1e-3 and per_round <= 4
    monkeypatch.setattr(cohort, "_WIDE", 10**9)
    counted.clear()
    all_of_them = train(sites, method="cohort-bundle", gap=1e-3, max_rounds=40)
    assert len(counted) / all_of_them.n_rounds > 4
    assert few.certificate.lower <= all_of_them.certificate.upper * (1 + 1e-9)
    assert all_of_them.certificate.lower <= few.certificate.upper * (1 + 1e-9)
