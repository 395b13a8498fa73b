"""What the adversary's actions say of the rows: their coefficients, their extents, and how often each counts."""

from __future__ import annotations

import numpy as np

from models.worst_case.saddle_point import FLIPPED, KEPT, UNTOUCHED, AdversaryAction, Rows, Saddle

LABELS = np.array([1.0, -1.0, 1.0, -1.0])


def test_coefficients_mix_the_actions_by_their_shares() -> None:
    """A hinge falls in the margin of a kept row and rises in that of a flipped one; means over the rows."""
    first = AdversaryAction(0.75, np.array([KEPT, KEPT, UNTOUCHED, FLIPPED], dtype=np.int8))
    second = AdversaryAction(0.25, np.array([KEPT, FLIPPED, FLIPPED, UNTOUCHED], dtype=np.int8))
    found = Saddle(1.0, 0.5, (first, second)).label_coefficients(LABELS)
    assert found.tolist() == [-0.25, (0.75 - 0.25) / 4, 0.25 / 4, -0.75 / 4]


def test_nothing_is_moved_where_no_extent_is_given() -> None:
    act = np.zeros(3, dtype=np.int8)
    assert AdversaryAction(1.0, act).extents.tolist() == [0.0, 0.0, 0.0]
    assert AdversaryAction(1.0, act, np.array([0.5, 0.0, 1.0])).extents.tolist() == [0.5, 0.0, 1.0]


def test_values_are_weighed_by_how_often_a_row_counts_and_stay_as_they_were() -> None:
    values, often = np.ones(4), np.array([0.5, 2.0, 1.0, 0.5])
    rows = Rows(np.ones((4, 1)), LABELS, np.ones(1), LABELS, 0.1, 1.0, "l2", None)
    assert rows.weigh(values) is values and rows.count == 4
    weighed = Rows(np.ones((4, 1)), LABELS, np.ones(1), LABELS, 0.1, 1.0, "l2", None, often).weigh(values)
    assert weighed.tolist() == often.tolist() and values.tolist() == [1.0] * 4
