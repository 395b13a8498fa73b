"""What a version keeps of a coupling is the coupling, to the last bit, and what a task asks has a limit."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from services.contracts.problems.coupling import Coupling, CouplingTask

FOUND = np.array([[1.0, 0.1, 0.2, -5.0], [0.3, 1.0, 1 / 3, 7.0], [0.0, 0.5, 1.0, 1e-300]])


def coupling() -> Coupling:
    return Coupling.of(FOUND, objective=0.25, before=0.5, at_least=0.125, rounds=3)


def test_matrix_and_offsets_come_back_to_the_last_bit() -> None:
    kept = Coupling.model_validate_json(coupling().model_dump_json())
    np.testing.assert_array_equal(kept.array, FOUND)
    assert kept.offsets == (-5.0, 7.0, 1e-300) and kept.matrix[1] == (0.3, 1.0, 1 / 3)
    assert kept == coupling()


def test_its_line_says_which_figure_is_which() -> None:
    words = coupling().words
    assert "in 3 exchanges" in words and "at most 0.5 before, at most 0.25 now, 0.125 at least" in words


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_none_is_refused(value: float) -> None:
    for name, held in (("matrix", ((value,),)), ("offsets", (value,))):
        fields = coupling().model_dump() | {name: held}
        with pytest.raises(ValidationError):
            Coupling.model_validate(fields)


def test_a_task_asks_at_eight_points_at_most() -> None:
    assert [CouplingTask(points=points).points for points in (1, 8)] == [1, 8]
    for points in (0, 9):
        with pytest.raises(ValidationError):
            CouplingTask(points=points)
