r"""Answers as whole numbers that can be summed without an error, and cuts that stay cuts when they are rounded.

Masks live in the integers modulo 2^64, so a plant sends ``share * value`` as a whole multiple of a grid: 2^-40 for
risks, heights and points; for slopes, norm weights and swings, which weights multiply, 2^-40 of the unit 2^-12. The
sum of the words is exact, whatever the number of plants and the order; only each plant's own rounding is left, and it
is taken in the direction in which everything that is proven stays proven:

- a risk is rounded up: the sum is above the risk;
- a norm weight or a swing is rounded down, which lowers the cut ``c + <s, u> + n ||u||_* + <t, |u|>`` for every u;
- a slope goes to the nearest multiple, off by d (D,), and the cut's height is lowered by ``sum_p |d_p| reach``: for
  all weights with ``|u_p| <= reach = 2^12`` the cut is below what it was. No finite grid does it for every u (a slope
  may be the steepest that a minorant of the risk has at all), so a lower bound from sums is that of the planes within
  the reach, in the units of training, in which features are of order 1. The price is near ``n D 2^-41`` for n plants
  and slopes of order 1: 4e-11 for a cohort of three with 30 features;
- a height at a point w is lowered besides by what the rounded parts were at w, since it is told relative to them, and
  rounded down.

Shares of a cohort sum to 1, so its sum is nowhere larger than the largest value: a plant refuses values above 2^22
(2^10 on the finer grid), and no sum overflows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.basics import Arrays, FloatArray, ProblemError
from models.problem import REACH

Words = NDArray[np.uint64]

COARSE_BITS: Final = 40  # a sum of risks to 1e-12, with 2^22 left for its size
FINE_BITS: Final = 52  # the digits that a double has

_WORD_BITS = 62
"""Below the 63 of a signed word by one: the rounding of all plants together never fills it."""
_EPS = float(np.finfo(np.float64).eps)
"""What a product with the share and one subtraction may be off by, relative to it: half of it each."""
_FINE = ("slope", "norm_weight", "swing")


def bits_of(name: str) -> int:
    """Bits behind the point of an answer's array, by its name."""
    return FINE_BITS if name.removeprefix("minorant_") in _FINE else COARSE_BITS


def word_count(shapes: Mapping[str, tuple[int, ...]]) -> int:
    """How many words an answer of these shapes takes."""
    return sum(math.prod(shape) for shape in shapes.values())


def asked_points(message: Arrays) -> FloatArray:
    """Points (.., D) or (.., q, D) that a message asks about; where it asks about none, (1,)."""
    return message["points"] if "points" in message else message.get("point", np.zeros(1))


def to_words(answer: Arrays, share: float, points: FloatArray) -> Words:
    """A plant's part of its cohort's sum, (L,): ``share`` times its answer, arrays in the order of their names.

    ``points`` (D,) or (q, D) are those that ``risk`` and ``cut_height`` () or (q,) are of.

    Raises
    ------
    ProblemError
        A value that is not finite, or too large for the sums.
    """
    for name, array in answer.items():
        largest, limit = float(np.abs(array).max(initial=0.0)), 2.0 ** (_WORD_BITS - bits_of(name))
        if not largest <= limit:
            raise ProblemError(
                f"the answer's {name} holds {largest:g}, and a sum over plants takes no more than {limit:g}: "
                "state the problem in units in which features are of order 1"
            )
    whole: dict[str, FloatArray] = {}
    for prefix, height in (("", "cut_height"), ("minorant_", "minorant_offset")):
        if prefix + "slope" not in answer:
            continue
        slope = share * answer[prefix + "slope"]
        whole[prefix + "slope"] = np.rint(np.ldexp(slope, FINE_BITS))
        off = np.abs(np.ldexp(whole[prefix + "slope"], -FINE_BITS) - slope) + _EPS * np.abs(slope)
        at = np.abs(points) if height == "cut_height" else np.zeros(off.shape[-1])
        lost = (off * (REACH + at)).sum(axis=-1)
        for name in ("norm_weight", "swing"):
            if prefix + name in answer:
                part = share * answer[prefix + name]
                whole[prefix + name] = _down(part, FINE_BITS)
                less = part + _EPS * np.abs(part) - np.ldexp(whole[prefix + name], -FINE_BITS)
                # No dual norm is above the sum of the absolute weights.
                lost = lost + (less * at.sum(axis=-1) if name == "norm_weight" else _inner(less, at))
        whole[height] = _down(share * answer[height] - (1.0 + _EPS) * lost, COARSE_BITS)
    for name in answer.keys() - whole.keys():
        value = share * answer[name]
        whole[name] = -_down(-value, COARSE_BITS) if name == "risk" else np.rint(np.ldexp(value, COARSE_BITS))
    return np.concatenate([whole[name].astype(np.int64).ravel() for name in sorted(whole)]).view(np.uint64)


def from_words(words: Words, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, FloatArray]:
    """Arrays of these shapes from the sum of the words (L,).

    :class:`ProblemError` where these shapes need another number of words.
    """
    if words.shape != (word_count(shapes),):
        raise ProblemError(f"a sum of {word_count(shapes)} words was due, got {words.shape}")
    ends = np.cumsum([math.prod(shapes[name]) for name in sorted(shapes)])[:-1]
    parts = zip(sorted(shapes), np.split(words.view(np.int64), ends), strict=True)
    return {name: np.ldexp(part.astype(np.float64), -bits_of(name)).reshape(shapes[name]) for name, part in parts}


def _down(values: FloatArray, bits: int) -> FloatArray:
    """Whole multiples of the grid at or below what the values stand for."""
    return np.floor(np.ldexp(values - _EPS * np.abs(values), bits))


def _inner(less: FloatArray, at: FloatArray) -> FloatArray:
    """Sum over the features (P,), the first of the weights (D,)."""
    return np.asarray((less * at[..., : less.shape[-1]]).sum(axis=-1))
