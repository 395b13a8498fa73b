"""Some rows of a site on a box, prepared so that a price is answered quickly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from models.worst_case.box_transport import Gains, make_gains, stops
from models.worst_case.dual_search import Answer
from models.worst_case.saddle_point import FLIPPED, KEPT, Rows


class Block(Protocol):
    """Rows that answer prices."""

    def at(self, multiplier: float) -> Answer:
        """What every row answers at ``multiplier >= 0``."""

    def take(self, rows: NDArray[np.intp]) -> Block:
        """Some of the rows."""


def make_block(
    margins: FloatArray, clearance: FloatArray, other: FloatArray | None, slope: FloatArray, rows: Rows,
    counts: FloatArray | None = None,
) -> Block:
    """Block of n rows with ``clearance`` (n, P) in the direction that harms the label, ``other`` in the opposite one.

    ``other`` is None where labels are not flipped. ``slope`` are the absolute weights, none of them 0. ``counts`` (n,)
    is how often each row counts: answers and moves are that many times those of the row; None: once.
    """
    both = clearance if other is None else np.concatenate([clearance, other])
    if rows.transport_norm == "linf":
        return _line_block(margins, *stops(both, slope), rows.label_flip_cost, counts)
    flipped_loss = margins[:0] if other is None else 1.0 + margins
    gains = make_gains(both, slope, rows.transport_norm)
    return _GainBlock(counts, 1.0 - margins, flipped_loss, gains, rows.label_flip_cost)


def _some(counts: FloatArray | None, rows: NDArray[np.intp]) -> FloatArray | None:
    return None if counts is None else counts[rows]


@dataclass(frozen=True)
class _LineBlock:
    """Transport norm l-inf: every row is the largest of a few lines ``start - multiplier * spent``.

    First 0, the sample left alone; then one line for each stop of it under its label; then one for each of it flipped.
    ``act`` (L,) says which.
    """

    counts: FloatArray | None
    start: FloatArray
    spent: FloatArray
    extent: FloatArray
    act: NDArray[np.int8]

    def at(self, multiplier: float) -> Answer:
        heights = self.start - multiplier * self.spent
        best = heights.argmax(axis=1)
        flat = best + np.arange(0, heights.size, heights.shape[1])
        answer = Answer(heights.take(flat), self.spent.take(flat), self.act[best], self.extent.take(flat))
        return answer.weighed(self.counts)

    def take(self, rows: NDArray[np.intp]) -> Block:
        counts = _some(self.counts, rows)
        return _LineBlock(counts, self.start[rows], self.spent[rows], self.extent[rows], self.act)


def _line_block(
    margins: FloatArray, extents: FloatArray, gained: FloatArray, label_flip_cost: float, counts: FloatArray | None
) -> _LineBlock:
    """Lines from the stops of the rows under their labels, and, where labels are flipped, of the flipped ones."""
    n, width = margins.shape[0], extents.shape[1]
    lines = 1 + (extents.shape[0] // n) * width
    # Ties go to the first of the lines that touch: doing nothing, then not flipping, then the shorter move.
    start, extent, act = np.empty((n, lines)), np.empty((n, lines)), np.zeros(lines, dtype=np.int8)
    start[:, 0] = extent[:, 0] = 0.0
    np.add(gained[:n], (1.0 - margins)[:, None], out=start[:, 1 : 1 + width])
    extent[:, 1 : 1 + width] = extents[:n]
    act[1 : 1 + width] = KEPT
    if extents.shape[0] == n:
        return _LineBlock(counts, start, extent, extent, act)
    np.add(gained[n:], (1.0 + margins)[:, None], out=start[:, 1 + width :])
    extent[:, 1 + width :] = extents[n:]
    act[1 + width :] = FLIPPED
    spent = extent.copy()
    spent[:, 1 + width :] += label_flip_cost
    return _LineBlock(counts, start, spent, extent, act)


@dataclass(frozen=True)
class _GainBlock:
    """Rows with their gains: under their labels, then, where labels are flipped, those of the flipped rows."""

    counts: FloatArray | None
    kept_loss: FloatArray
    flipped_loss: FloatArray
    gains: Gains
    label_flip_cost: float

    def at(self, multiplier: float) -> Answer:
        gain, move, extent = self.gains.at(multiplier)
        n = self.kept_loss.shape[0]
        kept = self.kept_loss + gain[:n]
        active = kept > 0
        value, spent, reached = np.where(active, kept, 0.0), np.where(active, move[:n], 0.0), extent[:n]
        act = active.astype(np.int8)
        if gain.shape[0] > n:
            flipped = self.flipped_loss + gain[n:] - self.label_flip_cost * multiplier
            better = flipped > value
            act[better] = FLIPPED
            value = np.where(better, flipped, value)
            spent = np.where(better, move[n:] + self.label_flip_cost, spent)
            reached = np.where(better, extent[n:], reached)
        return Answer(value, spent, act, reached).weighed(self.counts)

    def take(self, rows: NDArray[np.intp]) -> Block:
        n, flips = self.kept_loss.shape[0], self.flipped_loss.shape[0] > 0
        return _GainBlock(
            _some(self.counts, rows),
            self.kept_loss[rows],
            self.flipped_loss[rows] if flips else self.flipped_loss,
            self.gains.take(np.concatenate([rows, rows + n]) if flips else rows),
            self.label_flip_cost,
        )
