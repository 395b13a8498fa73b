"""From the words that plants sent to the answers of cohorts that a server half takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.basics import Arrays, FloatArray, ProblemError
from models.cohorts.fixed_point import Words, from_words
from models.methods.catalogue import METHODS
from models.methods.protocol import Method

PARTIAL = ("risk",)
"""What a part of a cohort does not tell: a risk from above. It tells cuts, since no plant's risk is below 0."""


@dataclass(frozen=True)
class CohortSum:
    """Sum (L,) of the words of the plants of a cohort that were there, whether all were, and which."""

    words: Words
    complete: bool = True
    present: tuple[str, ...] = ()


def check_on_sums(method: Method) -> None:
    """Refuse a method whose server half needs single answers; ``ProblemError`` names those that do not."""
    if not method.on_sums:
        can = ", ".join(sorted(name for name, each in METHODS.items() if each.on_sums))
        raise ProblemError(
            f'method {method.name} needs the answer of each plant: set reveal = "each site", or take one of {can}'
        )


def cohort_answers(
    method: Method, sums: Mapping[str, CohortSum], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, Arrays]:
    """Answers by cohort for the method's ``step``; a cohort without any is absent.

    The sum over a part of a cohort has NaN for its risk, where the method takes it at all (``partial_sums``).
    """
    answers: dict[str, Arrays] = {}
    for cohort, each in sums.items():
        arrays: dict[str, FloatArray] = from_words(each.words, shapes)
        if not each.complete:
            if not getattr(method.server, "partial_sums", False):
                continue
            arrays |= {name: np.full_like(arrays[name], np.nan) for name in PARTIAL}
        answers[cohort] = arrays
    return answers
