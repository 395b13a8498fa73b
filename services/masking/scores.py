"""Scalars of an evaluation as words that a cohort sums: risks and losses by share, counts and sums as they are.

The risk is rounded up, so the cohort's is at or above the shares' mean of its plants' (``models.cohorts.fixed_point``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from models.basics import Arrays, FloatArray
from models.cohorts.fixed_point import from_words, to_words, word_count
from services.masking.keys import Words

T = TypeVar("T")
_BY_SHARE = ("risk", "loss")
_NOWHERE = np.zeros(1)  # scores belong to no point


def score_words(scores: Arrays, share: float) -> Words:
    """Words (L,) of a plant's ``risk`` (K,) and ``loss`` () times its share, and of its counts and sums.

    An answer to a question of counts has no part that goes by share.
    """
    mean, counted = _parted(scores)
    return np.concatenate([to_words(part, by, _NOWHERE) for part, by in ((mean, share), (counted, 1.0)) if part])


def summed_scores(words: Words, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, FloatArray]:
    """Scores of a cohort, of these shapes, from the sum of the words: mean risk and loss, counts and sums of all."""
    mean, counted = _parted(shapes)
    count = word_count(mean)
    parts = ((words[:count], mean), (words[count:], counted))
    return {name: each for some, named in parts if named for name, each in from_words(some, named).items()}


def _parted(named: Mapping[str, T]) -> tuple[dict[str, T], dict[str, T]]:
    by_share = {name: each for name, each in named.items() if name in _BY_SHARE}
    return by_share, {name: each for name, each in named.items() if name not in _BY_SHARE}
