"""An exchange of a tuning: names of arrays carry their part's number on the way, and are plain at both ends."""

from __future__ import annotations

import numpy as np
import pytest

from models.basics import ProblemError
from models.cohorts.fixed_point import to_words
from services.contracts.problems.coupling import CouplingTask
from services.coordinator.beginning.tuning_exchange import TuningQuestion

PARTS = ({"counts": (1,), "errors": (2, 2)}, {}, {"errors": (3,)})


def question() -> TuningQuestion:
    return TuningQuestion(number=1, task=CouplingTask(points=1), arrays={}, parts=PARTS)


def answer() -> dict[str, np.ndarray]:
    matrix = np.array([[1.0, -2.0], [3.0, 4.0]])
    return {"counts_0": np.array([9.0]), "errors_0": matrix, "errors_2": np.array([5.0, 6.0, 7.0])}


def test_an_answer_has_the_arrays_of_every_part_under_its_number() -> None:
    assert question().shapes == {name: array.shape for name, array in answer().items()}
    first, none, last = question().apart(answer())
    assert first["counts"] == 9.0 and first["errors"].tolist() == [[1.0, -2.0], [3.0, 4.0]] and none == {}
    assert last["errors"].tolist() == [5.0, 6.0, 7.0]


def test_the_sum_of_a_cohorts_words_is_read_part_by_part() -> None:
    told = answer()
    by_part = [{"counts": told["counts_0"], "errors": told["errors_0"]}, {"errors": told["errors_2"]}]
    words = np.concatenate([to_words(each, 1.0, np.zeros(1)) for each in by_part])
    first, none, last = question().from_words(words)
    assert none == {} and last["errors"] == pytest.approx(told["errors_2"])
    assert first["errors"] == pytest.approx(told["errors_0"]) and first["counts"] == pytest.approx(told["counts_0"])
    with pytest.raises(ProblemError, match="words was due"):
        question().from_words(words[:-1])
