"""What stands in the record of the exposure: what is read of a version of the data, and what an answer adds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from models.basics import FloatArray
from services.site_agent.vault.isolation.span import Figures


@dataclass(frozen=True)
class Stored:
    """What is known of a version of the data: sketches (M, q), directions (r, N), rows isolated, and counts."""

    sketches: FloatArray
    directions: FloatArray
    pairs: frozenset[int] = frozenset()
    differences: frozenset[int] = frozenset()
    unaccounted: int = 0
    span_full: bool = False
    vectors: int = 0


@dataclass(frozen=True)
class Addition:
    """What one answer adds: directions and isolated rows that are new, and the figures after it.

    ``sketches`` are those of its vectors, also of one that left before: it is one of the last ones again. ``isolated``
    says of a row whether a vector or a pair of them shows it; a row may be new in that alone. ``late`` is what is kept
    of vectors under products (``few_rows``).
    """

    sketches: tuple[FloatArray, ...]
    directions: tuple[FloatArray, ...]
    isolated: Mapping[int, bool]
    figures: Figures
    span_full: bool
    unaccounted: int = 0
    late: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class Budget:
    """Answers of a run about a version of the data, and the runs of all versions beside it that began since a time."""

    answers: int
    other_runs: int
