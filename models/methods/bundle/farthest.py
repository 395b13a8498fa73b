r"""How far from zero a question may lie, where cuts do not say it.

A best model is no worse than zero weights, and a ball says what weights cost: with radius_g and a loss as steep as the
hinge, ``r_g(w) >= radius_g ||w||_*`` on unbounded features, whatever the rows are; on a box [0, 1]^P of diameter D the
share ``radius_g / D`` of the mass can be at any corner, so that ``r_g(w) >= min(1, radius_g / D) (||w||_1 / 2 - 1)``
where both classes have that much. Cuts do not always say so: those of all classes as one problem have no norm, and
where it is cheaper to flip labels, or to move targets, than to move features, the worst case at zero moves none. Then
their least lies hundreds of times too far, and plants refuse to answer there
(``services.site_agent.limits.questions``). So questions stay within some times what the best risk so far allows, or
twice as far out as the best point. No bound rests on that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from models.basics import FloatArray, TransportNorm
from models.cuts.bounds import enough
from models.cuts.cut_model import CutModel, ModelPoint
from models.cuts.cut_program import project
from models.cuts.evidence import Evidence
from models.geometry.norms import DUAL_NORM, vector_norm
from models.problem import REACH, ServerProblem

_FARTHEST = 16.0
"""Times what the best risk so far allows the weights to cost."""
_APART = 1e-3
"""Share of the risk by which bounds are apart where more than the last digits decides which of two points is lower."""


def bottom(
    model: CutModel, minimiser: ModelPoint, evidence: Evidence
) -> tuple[float, FloatArray | None]:
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
    share = _share(found.point, evidence, problem)
    return found if share >= 1.0 else replace(found, point=best + share * (found.point - best))


def _share(point: FloatArray, evidence: Evidence, problem: ServerProblem) -> float:
    """Share of the way from the best point to this one that questions may go; 1 and more: all of it."""
    best = evidence.best_point
    way, share = point - best, math.inf
    for norm, farthest, length in _limits(problem, evidence.upper):
        long, far = (float(vector_norm(each[:length], norm)) for each in (way, best))
        share = min(share, max(farthest, 2.0 * far) / long if long > 0 else math.inf)
    return share


def _limits(problem: ServerProblem, upper: float) -> Iterator[tuple[TransportNorm, float, int]]:
    """A norm, how large that of the first so many weights may be, and how many."""
    yield "linf", REACH, problem.dimension
    radius, p = max(site.radius for site in problem.sites), problem.n_features
    if radius == 0 or not math.isfinite(upper):
        return
    if problem.box:
        diameter = {"l1": float(p), "l2": math.sqrt(p), "linf": 1.0}[problem.transport_norm]
        yield "l1", 2.0 * _FARTHEST * upper * max(diameter / radius, 1.0), p
    else:
        yield DUAL_NORM[problem.transport_norm], _FARTHEST * upper / radius, p
