"""Some rows of a site on a box, prepared so that a price is answered quickly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from models.box_gains import Gains, make_gains, move_sizes, stops
from models.price_search import Answer
from models.problem import FloatArray, TransportNorm
from models.saddle import FLIPPED, KEPT, UNTOUCHED, Rows


class Block(Protocol):
    """Rows that answer prices."""

    def at(self, price: float) -> Answer:
        """What every row answers at ``price >= 0``."""
        ...

    def take(self, rows: NDArray[np.intp]) -> Block:
        """Some of the rows."""
        ...

    def moved(self, act: NDArray[np.int8], reach: FloatArray) -> FloatArray:
        """Sum over the rows of how far each feature is moved, (P,)."""
        ...


def make_block(margins: FloatArray, room: FloatArray, other: FloatArray | None, slope: FloatArray, rows: Rows) -> Block:
    """Block of n rows with ``room`` (n, P) in the direction that harms the label and ``other`` in the opposite one.

    ``other`` is None where labels are not flipped. ``slope`` are the absolute weights, none of them 0.
    """
    rooms = _Rooms(room, other, slope, rows.transport_norm)
    if rows.transport_norm == "linf":
        return _line_block(margins, rooms, rows.label_flip_cost)
    both = room if other is None else np.concatenate([room, other])
    flipped_loss = margins[:0] if other is None else 1.0 + margins
    gains = make_gains(both, slope, rows.transport_norm)
    return _GainBlock(rooms, 1.0 - margins, flipped_loss, gains, rows.label_flip_cost)


@dataclass(frozen=True)
class _Rooms:
    """Where the rows can be moved to, under their labels and flipped."""

    room: FloatArray
    other: FloatArray | None
    slope: FloatArray
    norm: TransportNorm

    def take(self, rows: NDArray[np.intp]) -> _Rooms:
        return _Rooms(self.room[rows], None if self.other is None else self.other[rows], self.slope, self.norm)

    def moved(self, act: NDArray[np.int8], reach: FloatArray) -> FloatArray:
        room = self.room if self.other is None else np.where((act == FLIPPED)[:, None], self.other, self.room)
        return np.asarray((act != UNTOUCHED) @ move_sizes(room, self.slope, self.norm, reach))


@dataclass(frozen=True)
class _LineBlock:
    """Transport norm l-inf: every row is the largest of a few lines ``start - price * spent``.

    First 0, the sample left alone; then one line for each stop of it under its label; then one for each of it flipped.
    ``act`` (L,) says which.
    """

    rooms: _Rooms
    start: FloatArray
    spent: FloatArray
    reach: FloatArray
    act: NDArray[np.int8]

    def at(self, price: float) -> Answer:
        heights = self.start - price * self.spent
        best = heights.argmax(axis=1)
        flat = best + np.arange(0, heights.size, heights.shape[1])
        return Answer(heights.take(flat), self.spent.take(flat), self.act[best], self.reach.take(flat))

    def take(self, rows: NDArray[np.intp]) -> Block:
        return _LineBlock(self.rooms.take(rows), self.start[rows], self.spent[rows], self.reach[rows], self.act)

    def moved(self, act: NDArray[np.int8], reach: FloatArray) -> FloatArray:
        return self.rooms.moved(act, reach)


def _line_block(margins: FloatArray, rooms: _Rooms, label_flip_cost: float) -> _LineBlock:
    room, other, slope = rooms.room, rooms.other, rooms.slope
    n, width = room.shape[0], room.shape[1] + 1
    reaches, gained = stops(room if other is None else np.concatenate([room, other]), slope)
    lines = 1 + (reaches.shape[0] // n) * width
    # Ties go to the first of the lines that touch: doing nothing, then not flipping, then the shorter move.
    start, reach, act = np.empty((n, lines)), np.empty((n, lines)), np.zeros(lines, dtype=np.int8)
    start[:, 0] = reach[:, 0] = 0.0
    np.add(gained[:n], (1.0 - margins)[:, None], out=start[:, 1 : 1 + width])
    reach[:, 1 : 1 + width] = reaches[:n]
    act[1 : 1 + width] = KEPT
    if other is None:
        return _LineBlock(rooms, start, reach, reach, act)
    np.add(gained[n:], (1.0 + margins)[:, None], out=start[:, 1 + width :])
    reach[:, 1 + width :] = reaches[n:]
    act[1 + width :] = FLIPPED
    spent = reach.copy()
    spent[:, 1 + width :] += label_flip_cost
    return _LineBlock(rooms, start, spent, reach, act)


@dataclass(frozen=True)
class _GainBlock:
    """Rows with their gains: under their labels, then, where labels are flipped, those of the flipped rows."""

    rooms: _Rooms
    kept_loss: FloatArray
    flipped_loss: FloatArray
    gains: Gains
    label_flip_cost: float

    def at(self, price: float) -> Answer:
        gain, move, reach = self.gains.at(price)
        n = self.kept_loss.shape[0]
        kept = self.kept_loss + gain[:n]
        active = kept > 0
        value, spent, reached = np.where(active, kept, 0.0), np.where(active, move[:n], 0.0), reach[:n]
        act = active.astype(np.int8)
        if gain.shape[0] > n:
            flipped = self.flipped_loss + gain[n:] - self.label_flip_cost * price
            better = flipped > value
            act[better] = FLIPPED
            value = np.where(better, flipped, value)
            spent = np.where(better, move[n:] + self.label_flip_cost, spent)
            reached = np.where(better, reach[n:], reached)
        return Answer(value, spent, act, reached)

    def take(self, rows: NDArray[np.intp]) -> Block:
        n, flips = self.kept_loss.shape[0], self.flipped_loss.shape[0] > 0
        return _GainBlock(
            self.rooms.take(rows),
            self.kept_loss[rows],
            self.flipped_loss[rows] if flips else self.flipped_loss,
            self.gains.take(np.concatenate([rows, rows + n]) if flips else rows),
            self.label_flip_cost,
        )

    def moved(self, act: NDArray[np.int8], reach: FloatArray) -> FloatArray:
        return self.rooms.moved(act, reach)
