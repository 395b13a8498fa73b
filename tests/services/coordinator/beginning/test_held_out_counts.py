"""Scores of a tuning that are of no one set of held-out rows end the run and name who told them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from models.basics import Arrays, FloatArray
from models.tuning.candidates import Candidate
from models.tuning.rungs import Asked, Exchange
from services.contracts.wire.messages import Task
from services.coordinator.beginning.held_out_counts import check_counts
from services.coordinator.run_state.run_errors import ContradictingAnswersError
from tests.services.coordinator.beginning.test_tuning import BRIEF, curve_of, tuned
from tests.services.coordinator.fake_ports import FakeWorks

SMALL, LARGE = Candidate(1.0, 1.0, 0), Candidate(3.0, 1.0, 0)


def exchange(*places: tuple[Candidate, int], pooled: bool = False) -> Exchange:
    return Exchange(tuple(Asked(each, fold, np.zeros((1, 3))) for each, fold in places), scored=True, pooled=pooled)


def check(
    asked: Exchange, scores: Sequence[FloatArray | None], members: dict[str, tuple[str, ...]] | None = None,
    joined: dict[str, int] | None = None,
) -> None:
    told: dict[str, list[Arrays]] = {"a": [{} if each is None else {"score": each} for each in scores]}
    check_counts(asked, told, members or {}, joined or {"a": 20, "x": 10, "y": 10, "z": 1})


def counts(*cells: float) -> FloatArray:
    return np.array(cells, dtype=float).reshape(2, 2)


def test_counts_of_the_same_rows_however_they_are_told_are_taken() -> None:
    check(exchange((SMALL, 0), (LARGE, 0)), [counts(5, 2, 0, 4), counts(0, 7, 4, 0)])


def test_rows_of_different_folds_need_not_be_alike() -> None:
    check(exchange((SMALL, 0), (SMALL, 1)), [counts(5, 2, 0, 4), counts(5, 3, 0, 4)])


def test_a_row_of_one_candidate_that_another_has_not_is_a_lie() -> None:
    with pytest.raises(ContradictingAnswersError, match="a lied in the tuning: 7, 4 .* 7, 5 of another"):
        check(exchange((SMALL, 0), (LARGE, 0)), [counts(5, 2, 0, 4), counts(5, 2, 1, 4)])


def test_a_row_that_changes_its_true_class_is_a_lie() -> None:
    with pytest.raises(ContradictingAnswersError, match="7, 4 .* 6, 5 of another"):
        check(exchange((SMALL, 0), (LARGE, 0)), [counts(5, 2, 0, 4), counts(4, 2, 1, 4)])


def test_counts_that_are_told_of_all_folds_together_are_held_together() -> None:
    asked = exchange((SMALL, 0), (SMALL, 1), (LARGE, 0), (LARGE, 1), pooled=True)
    check(asked, [counts(5, 2, 0, 4), None, counts(7, 0, 4, 0), None])
    with pytest.raises(ContradictingAnswersError):
        check(asked, [counts(5, 2, 0, 4), None, counts(7, 0, 4, 1), None])


def test_more_rows_than_a_plant_joined_with_are_a_lie() -> None:
    """A plant of forty rows that told a million chose the lift for all."""
    check(exchange((SMALL, 0)), [counts(5, 2, 0, 4)], joined={"a": 6})
    with pytest.raises(ContradictingAnswersError, match="a lied in the tuning: 11 held-out rows, joined with 5: 2 to"):
        check(exchange((SMALL, 0)), [counts(5, 2, 0, 4)], joined={"a": 5})
    with pytest.raises(ContradictingAnswersError, match="41 held-out rows, joined with 20"):
        check(exchange((SMALL, 0)), [np.array([41.0, 1.25])])
    cohort = {"a": ("x", "y", "z")}
    check(exchange((SMALL, 0)), [counts(20, 2, 0, 20)], cohort)
    with pytest.raises(ContradictingAnswersError, match="some plant of x, y, z .* 43 held-out rows, joined with 21"):
        check(exchange((SMALL, 0)), [counts(20, 2, 0, 21)], cohort)


@pytest.mark.parametrize("cell", [4.5, -1.0])
def test_what_counts_no_rows_is_a_lie(cell: float) -> None:
    with pytest.raises(ContradictingAnswersError, match="no whole numbers"):
        check(exchange((SMALL, 0)), [counts(5, 2, 0, cell)])


def test_errors_of_a_target_need_not_be_whole_and_their_rows_are_held() -> None:
    asked = exchange((SMALL, 0), (LARGE, 0))
    check(asked, [np.array([9.0, 1.25]), np.array([9.0, 40.5])])
    with pytest.raises(ContradictingAnswersError, match="9 held-out rows of one candidate and 10 of another"):
        check(asked, [np.array([9.0, 1.25]), np.array([10.0, 1.25])])
    with pytest.raises(ContradictingAnswersError, match="no whole numbers"):
        check(asked, [np.array([9.0, -1.25]), np.array([9.0, 1.25])])


def test_of_a_sum_all_plants_of_the_cohort_are_named() -> None:
    with pytest.raises(ContradictingAnswersError, match="some plant of x, y, z lied in the tuning: their sums say"):
        check(exchange((SMALL, 0), (LARGE, 0)), [counts(5, 2, 0, 4), counts(5, 2, 1, 4)], {"a": ("x", "y", "z")})


@pytest.mark.parametrize(("reveal", "who"), [("sums", "some plant of .*plant-2.* lied"), ("each site", "plant-2 lied")])
def test_one_count_that_a_plant_adds_ends_the_run(works: FakeWorks, reveal: str, who: str) -> None:
    def one_more(task: Task, arrays: dict[str, FloatArray]) -> dict[str, FloatArray]:
        scores = sorted(name for name in arrays if name.startswith("score"))
        return arrays | {name: arrays[name] + np.eye(2) for name in scores[-1:]}

    works.plants["plant-2"].falsify = one_more
    with pytest.raises(ContradictingAnswersError, match=who):
        tuned(works, tuning=BRIEF, reveal=reveal)
    works.plants["plant-2"].falsify = lambda task, arrays: arrays
    assert curve_of(tuned(works, tuning=BRIEF, reveal=reveal)).rounds > 1


@pytest.mark.parametrize(("reveal", "who"), [("sums", "some plant of .*plant-2.* lied"), ("each site", "plant-2 lied")])
@pytest.mark.parametrize("tuning", [BRIEF, "auto"])
def test_a_plant_that_counts_a_million_rows_chooses_nothing(
    works: FakeWorks, reveal: str, who: str, tuning: Any
) -> None:
    def many(task: Task, arrays: dict[str, FloatArray]) -> dict[str, FloatArray]:
        return {name: each * 1e5 if name.startswith("score") else each for name, each in arrays.items()}

    works.plants["plant-2"].falsify = many
    with pytest.raises(ContradictingAnswersError, match=who):
        tuned(works, tuning=tuning, reveal=reveal)
