"""Which level of a cut model is asked for, and its point: what all level bundles share."""

from __future__ import annotations

import math
from dataclasses import replace

from models.basics import FloatArray
from models.cuts.bounds import enough
from models.cuts.cut_model import CutModel, ModelPoint
from models.cuts.cut_program import project
from models.cuts.evidence import Evidence
from models.cuts.farthest import Farthest
from models.problem import ServerProblem

_SAME = 1e-11
"""Share of the risk by which two of its figures differ that are the same but for rounding."""
_APART = 1e-3
"""Share of the risk by which bounds are apart where more than the last digits decides which of two points is lower."""


def bottom(model: CutModel, minimiser: ModelPoint, evidence: Evidence) -> tuple[float, FloatArray | None]:
    """Value from which levels are counted, and a point (D,) at it; where the minimum was missed the proven bound, None.

    Few cuts, as at a champion of which nothing else is known, may be flat for ever, and the least of them so far away
    that rounding puts it above the best point. That one would then be at every level: asked again, and no end.
    """
    lowest, at_best = model.value(minimiser.point), model.value(evidence.best_point)
    missed = lowest > at_best and at_best - evidence.lower > _APART * at_best
    return (evidence.lower, None) if missed else (lowest, minimiser.point)


def projected(
    model: CutModel, level: float, evidence: Evidence, problem: ServerProblem, towards: FloatArray | None = None
) -> ModelPoint:
    """The best point projected on a level, or as far on the way there as questions go; ``towards`` as in ``project``.

    A few nearly flat cuts, as of classes that no plane tells apart, have their least at weights of some 1e5, and levels
    that are counted from there lie as far. The model falls all along the way to a projection; not on that to its least,
    which may lie far off along weights of which cuts say nothing.
    """
    best = evidence.best_point
    found = project(model, best, level, within=enough(evidence), towards=towards)
    radius = max(site.radius for site in problem.sites)
    farthest = Farthest(problem.n_features, radius, problem.transport_norm, problem.box, problem.reach)
    # Before all sites were heard at one point the best risk is not known: losses are of order one.
    upper = evidence.upper if math.isfinite(evidence.upper) else max(model.value(best), 1.0)
    return replace(found, point=farthest.drawn_in(found.point, best, upper))


def is_lowest(model: CutModel, minimiser: ModelPoint, evidence: Evidence) -> bool:
    """Whether no point of the model is below the best risk but for rounding: no question can lead any further.

    It is proven then, unless the cuts are flat but for rounding, as at zero weights that are the best ones.
    """
    apart = abs(evidence.upper - model.value(minimiser.point))
    return math.isfinite(evidence.upper) and apart <= _SAME * evidence.upper
