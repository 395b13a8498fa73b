"""Some rows of a site on a box, prepared so that a price is answered quickly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray, TransportNorm
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
    clearances = _Clearances(clearance, other, slope, rows.transport_norm, counts)
    if rows.transport_norm == "linf":
        return _line_block(margins, clearances, rows.label_flip_cost)
    both = clearance if other is None else np.concatenate([clearance, other])
    flipped_loss = margins[:0] if other is None else 1.0 + margins
    gains = make_gains(both, slope, rows.transport_norm)
    return _GainBlock(clearances, 1.0 - margins, flipped_loss, gains, rows.label_flip_cost)


@dataclass(frozen=True)
class _Clearances:
    """Where the rows can be moved to, under their labels and flipped."""

    clearance: FloatArray
    other: FloatArray | None
    slope: FloatArray
    norm: TransportNorm
    counts: FloatArray | None

    def take(self, rows: NDArray[np.intp]) -> _Clearances:
        other = None if self.other is None else self.other[rows]
        counts = None if self.counts is None else self.counts[rows]
        return _Clearances(self.clearance[rows], other, self.slope, self.norm, counts)

    def weighed(self, answer: Answer) -> Answer:
        if self.counts is None:
            return answer
        return answer._replace(value=answer.value * self.counts, spent=answer.spent * self.counts)


@dataclass(frozen=True)
class _LineBlock:
    """Transport norm l-inf: every row is the largest of a few lines ``start - multiplier * spent``.

    First 0, the sample left alone; then one line for each stop of it under its label; then one for each of it flipped.
    ``act`` (L,) says which.
    """

    clearances: _Clearances
    start: FloatArray
    spent: FloatArray
    extent: FloatArray
    act: NDArray[np.int8]

    def at(self, multiplier: float) -> Answer:
        heights = self.start - multiplier * self.spent
        best = heights.argmax(axis=1)
        flat = best + np.arange(0, heights.size, heights.shape[1])
        return self.clearances.weighed(
            Answer(heights.take(flat), self.spent.take(flat), self.act[best], self.extent.take(flat))
        )

    def take(self, rows: NDArray[np.intp]) -> Block:
        return _LineBlock(self.clearances.take(rows), self.start[rows], self.spent[rows], self.extent[rows], self.act)


def _line_block(margins: FloatArray, clearances: _Clearances, label_flip_cost: float) -> _LineBlock:
    clearance, other, slope = clearances.clearance, clearances.other, clearances.slope
    n, width = clearance.shape[0], clearance.shape[1] + 1
    extents, gained = stops(clearance if other is None else np.concatenate([clearance, other]), slope)
    lines = 1 + (extents.shape[0] // n) * width
    # Ties go to the first of the lines that touch: doing nothing, then not flipping, then the shorter move.
    start, extent, act = np.empty((n, lines)), np.empty((n, lines)), np.zeros(lines, dtype=np.int8)
    start[:, 0] = extent[:, 0] = 0.0
    np.add(gained[:n], (1.0 - margins)[:, None], out=start[:, 1 : 1 + width])
    extent[:, 1 : 1 + width] = extents[:n]
    act[1 : 1 + width] = KEPT
    if other is None:
        return _LineBlock(clearances, start, extent, extent, act)
    np.add(gained[n:], (1.0 + margins)[:, None], out=start[:, 1 + width :])
    extent[:, 1 + width :] = extents[n:]
    act[1 + width :] = FLIPPED
    spent = extent.copy()
    spent[:, 1 + width :] += label_flip_cost
    return _LineBlock(clearances, start, spent, extent, act)


@dataclass(frozen=True)
class _GainBlock:
    """Rows with their gains: under their labels, then, where labels are flipped, those of the flipped rows."""

    clearances: _Clearances
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
        return self.clearances.weighed(Answer(value, spent, act, reached))

    def take(self, rows: NDArray[np.intp]) -> Block:
        n, flips = self.kept_loss.shape[0], self.flipped_loss.shape[0] > 0
        return _GainBlock(
            self.clearances.take(rows),
            self.kept_loss[rows],
            self.flipped_loss[rows] if flips else self.flipped_loss,
            self.gains.take(np.concatenate([rows, rows + n]) if flips else rows),
            self.label_flip_cost,
        )
