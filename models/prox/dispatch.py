r"""Local steps where the fast solvers of ``models.prox`` do not fit: a support, or another loss than the hinge.

All are ``min_w r(w) + ridge ||w||^2 + penalty/2 ||w - centre||^2`` by the bundle of ``models.prox.bundle``. A prox cut
needs no more than a minorant that is near-tight where the step ends, so it is solved roughly: the minorant is a mixture
of exact cuts and bounds the risk from below however rough the step is.
"""

from __future__ import annotations

from models.basics import FloatArray
from models.problem import SiteProblem
from models.prox.bundle import LocalStep, RiskPenalty, local_step

ROUGH, ROUGH_CUTS = 1e-3, 25
"""Relative gap and number of exact risks at which a prox cut is good enough."""


def fast_prox_fits(problem: SiteProblem) -> bool:
    """Whether ``models.prox`` solves the local step: hinge loss, features without bounds, every row counted once."""
    return problem.spec.support is None and problem.spec.loss.name == "hinge" and problem.row_weights is None


def local_minorant(problem: SiteProblem, centre: FloatArray, penalty: float) -> LocalStep:
    """Rough prox step of ``centre``, for the sake of its minorant."""
    return local_step(problem, centre, RiskPenalty(1.0 / penalty), tolerance=ROUGH, max_cuts=ROUGH_CUTS)


def local_prox(
    problem: SiteProblem, centre: FloatArray, penalty: float, *, ridge: float = 0.0, start: FloatArray | None = None
) -> LocalStep:
    """Prox step to working precision; ``start`` (D,) is a first guess."""
    stiffness = penalty + 2.0 * ridge
    return local_step(problem, centre * (penalty / stiffness), RiskPenalty(1.0 / stiffness), start=start)
