"""Which plants an audit takes for copies of one another, by what they told of their risks and slopes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from models.cohorts.fixed_point import to_words
from services.auditing.auditor import copied
from services.auditing.questions import Question
from services.contracts.problems.training_spec import TrainingSpec

SHAPES: dict[str, tuple[int, ...]] = {"risk": (1,), "cut_height": (1,), "slope": (1, 3), "norm_weight": (1,)}
POINT = np.array([[1.0, -2.0, 0.5]])


def put_out(told: Mapping[str, Sequence[tuple[float, float]]]) -> set[str]:
    """Plants that are left out after rounds in which each told these risks, and slopes of the first feature."""
    n_rounds = len(next(iter(told.values())))
    asked = [Question("ab" * 16, "c" * 64, number, TrainingSpec(), SHAPES, POINT) for number in range(n_rounds)]
    case: Any = SimpleNamespace(
        cohort=SimpleNamespace(run_id="ab" * 16),
        request=SimpleNamespace(rounds=[SimpleNamespace(asked=each) for each in asked]),
    )
    words = []
    for number in range(n_rounds):
        words.append({
            site: to_words({
                "risk": np.array([said[number][0]]), "cut_height": np.array([said[number][0]]),
                "slope": np.array([[said[number][1], 0.0, 0.0]]), "norm_weight": np.zeros(1),
            }, 1.0, POINT)
            for site, said in told.items()
        })
    found = copied(case, words)
    assert all(each.kind == "copied" and each.openings == () for each in found)
    return {each.site for each in found}


def rounds(count: int, size: float = 1.0) -> list[tuple[float, float]]:
    """Risks and slopes in no proportion to one another."""
    return [(size * (1.0 + number) / 16.0, size * (number * number + 1.0) / 64.0) for number in range(count)]


def test_of_two_in_one_proportion_at_six_points_one_is_left_out() -> None:
    assert len(put_out({"one": rounds(6), "other": rounds(6, 0.5), "third": rounds(6)[::-1]}) & {"one", "other"}) == 1
    assert put_out({"one": rounds(5), "other": rounds(5, 0.5)}) == set(), "few rows may agree on so few points"


def test_points_without_a_slope_say_nothing() -> None:
    flat = [(1.0, 0.0)] * 6
    assert put_out({"one": flat, "other": flat}) == set()
    assert put_out({"one": flat + rounds(5), "other": flat + rounds(5)}) == set()


def test_of_three_copies_one_stays_and_nobody_else_goes() -> None:
    told = {"a": rounds(7), "b": rounds(7, 2.0), "c": rounds(7, 0.25), "d": rounds(7)[::-1]}
    assert len(put_out(told)) == 2 and "d" not in put_out(told)


def test_what_differs_at_one_point_by_more_than_rounding_is_no_copy() -> None:
    near = [*rounds(6), (0.5 + 1e-6, 0.25)]
    assert put_out({"one": [*rounds(6), (0.5, 0.25)], "other": near}) == set()


def test_planes_that_no_row_gave_a_slope_make_no_copies() -> None:
    """Of three planes the risks of well classified rows are what the ball adds: alike at all plants of one radius."""
    shapes: dict[str, tuple[int, ...]] = {"risk": (3,), "cut_height": (3,), "slope": (3, 3), "norm_weight": (3,)}
    random = np.random.default_rng(0)
    points = [random.normal(size=(3, 3)) for _ in range(6)]
    case: Any = SimpleNamespace(
        cohort=SimpleNamespace(run_id="ab" * 16),
        request=SimpleNamespace(rounds=[
            SimpleNamespace(asked=Question("ab" * 16, "c" * 64, number, TrainingSpec(), shapes, point))
            for number, point in enumerate(points)
        ]),
    )

    def told(share: float, slope: float) -> list[Any]:
        return [
            to_words({
                "risk": 0.01 * np.linalg.norm(point[:, :2], axis=1), "cut_height": np.zeros(3),
                "slope": slope * point, "norm_weight": np.full(3, 0.01),
            }, share, point)
            for point in points
        ]

    for slope, out in ((0.0, 0), (0.125, 1)):
        words = [dict(zip(("one", "other"), both, strict=True))
                 for both in zip(told(0.25, slope), told(0.5, slope), strict=True)]
        assert len(copied(case, words)) == out
