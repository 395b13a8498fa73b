"""Which rows are held out, by the machine that a row is of or by when it was taken, and which are neighbours."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray

Rows = NDArray[np.bool_]
_BLOCKS = 20  # of time: enough to deal out in folds, and few enough that few rows are next to another block


def held_by_machine(machines: Sequence[str], fraction: float, seed: int) -> Rows:
    """True for the rows of the machines that are held out, (N,): a fraction of them, one at least, never all.

    They are chosen by a seeded hash of their names, so the order of the rows does not matter.
    ``ValueError`` where there are fewer than two.
    """
    names = sorted(set(machines), key=lambda name: hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest())
    if len(names) < 2:
        raise ValueError("it names one machine; to hold machines out there must be two or more")
    count = min(max(round(fraction * len(names)), 1), len(names) - 1)
    chosen = frozenset(names[:count])
    return np.array([machine in chosen for machine in machines], dtype=np.bool_)


def held_by_time(times: FloatArray, fraction: float) -> Rows:
    """True for the last rows by time (N,), a fraction of them; rows of the same time are on the same side.

    ``ValueError`` where all have the same time.
    """
    count = min(max(round(fraction * len(times)), 1), len(times) - 1)
    cut = np.sort(times)[len(times) - count] if count else math.inf
    later = times >= cut
    if later.all():  # the cut is at the first time that there is: what comes after it is held out
        later = times > cut
    if not later.any():
        raise ValueError("it has one time for all rows; nothing is last")
    return np.asarray(later)


def by_machine(machines: Sequence[str]) -> NDArray[np.intp]:
    """A number for the machine of each row (N,): from a hash of its name, so the same whatever else the table holds."""
    numbers = {
        name: int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest()) >> 1 for name in set(machines)
    }
    return np.array([numbers[machine] for machine in machines], dtype=np.intp)


def by_time(times: FloatArray) -> NDArray[np.intp]:
    """Number of the block of time of each row (N,), 20 of alike many rows; rows of the same time are in one block."""
    order = np.searchsorted(np.sort(times), times)
    return np.asarray(order * _BLOCKS // max(len(times), 1), dtype=np.intp)


def seconds(text: str) -> tuple[float, bool]:
    """A time as a number, and whether it was one: numbers as they are, ISO 8601 in seconds; ``ValueError`` for others.

    A time without a zone counts as one of UTC.
    """
    try:
        value = float(text)
    except ValueError:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp(), False
    if not math.isfinite(value):
        raise ValueError("a time must be finite")
    return value, True
