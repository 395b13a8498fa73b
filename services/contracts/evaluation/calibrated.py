"""Sets, probabilities and abstention of a calibrated version, from the scores of its planes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.basics import FloatArray
from models.conformal.scores import class_scores, class_sets, reaches, score_sizes
from models.conformal.temperature import scaled_probabilities
from services.contracts.evaluation.calibration import NOVELTY, Calibration

UNLIKE: Final = "unlike what the model was held to"
"""In the reason of every answer to which no coverage is promised: the measurement is not like the held-out ones."""


@dataclass(frozen=True)
class CalibratedSets:
    """Of n measurements: classes by their names in ``sets`` (None: no set), probabilities, and why not to trust."""

    coverage: float | None
    sets: Sequence[tuple[str, ...] | None]
    probabilities: Sequence[dict[str, float] | None]
    reasons: Sequence[str]


def calibrated_sets(
    found: Calibration, names: Sequence[str], heads: FloatArray, scaled: FloatArray, coverage: float | None
) -> CalibratedSets:
    """What a calibration says of head scores (n, K) of scaled features (n, P); ``coverage`` None: the version's own.

    ``InvalidInputError`` or ``ConflictError`` for a coverage that is none, or not to be had.
    """
    scores, chosen = class_scores(heads), found.check(coverage)
    reasons = novelty(found, score_sizes(heads), scaled)
    sets: list[tuple[str, ...] | None] = [None] * len(scores)
    if chosen is not None:
        held = class_sets(scores, found.threshold(chosen))
        order = np.argsort(-scores, axis=1, kind="stable")
        sets = [tuple(names[k] for k in row if inside[k]) for row, inside in zip(order.tolist(), held, strict=True)]
        every = f"at coverage {chosen:g} it can be any of the classes"
        reasons = [
            "; ".join(part for part in (every if len(each or ()) == len(names) else "", reason) if part)
            for each, reason in zip(sets, reasons, strict=True)
        ]
    likely: list[dict[str, float] | None] = [None] * len(scores)
    if found.scale is not None:
        shares = scaled_probabilities(scores, found.scale).tolist()
        likely = [dict(zip(names, row, strict=True)) for row in shares]
    return CalibratedSets(chosen, sets, likely, reasons)


def novelty(found: Calibration, sizes: FloatArray, scaled: FloatArray) -> list[str]:
    """Why each measurement is unlike those held out, or nothing: two tests, of half the share :data:`NOVELTY` each.

    ``sizes`` (n,) are the largest absolute scores, ``scaled`` (n, P) the features. Of measurements like the held-out
    ones at most the share is called unlike them.
    """
    parts = {
        "its scores are larger": sizes > found.strangest("size"),
        "its sensors lie farther from the middle of their ranges": reaches(scaled) > found.strangest("reach"),
    }
    told = [" and ".join(text for text, strange in parts.items() if strange[row]) for row in range(len(scaled))]
    nearly = f"than those of {100.0 * (1.0 - NOVELTY / 2.0):g}% of the held-out measurements"
    return [f"{UNLIKE}: {text} {nearly}" if text else "" for text in told]
