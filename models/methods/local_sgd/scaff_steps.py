r"""Step sizes of Scaff-PD-IA: the schedule of the paper's Assumption 8, or constant ones.

With m the smallest and M the largest curvature of any site's loss, and ``||Lambda||_1`` the size of the set,

    gamma <- gamma (1 + (m/4 - M (||Lambda||_1 - 1)/2) tau),   tau <- tau sqrt(gamma_old/gamma),   sigma = gamma tau,

extrapolation ``sigma_old/sigma``, local steps of ``tau / (J max(1, 2 tau0 M))``. So tau falls and sigma grows like the
number of rounds, and the squared distance to the optimum falls like its inverse square (Theorem 3). The paper's largest
tau0 is 1 / (1200 M ||Lambda||_1): safe and slow. Where the bracket is not above 0 the steps stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from models.basics import ProblemError
from models.fairness.ambiguity_set import Convexity, RelativeSet, check_convexity

_C_ALPHA = 0.5
"""The paper's free constant c_alpha in (0, 1)."""
_LEAST_SQUARE = 1e-300
"""Of a step times the coupling: one over it is a number, and its product with the step too."""


@dataclass(frozen=True)
class Steps:
    """Sizes of one round: tau (global), sigma (dual), eta (local) and the extrapolation of the losses."""

    tau: float
    sigma: float
    eta: float
    extrapolation: float


@dataclass(frozen=True)
class StepRule:
    """First sizes, and what makes the next ones: ``growth`` is the bracket above, 0 for constant steps."""

    first: Steps
    growth: float
    beta: float
    local_steps: int

    def after(self, steps: Steps) -> Steps:
        """Sizes of the round after one with these."""
        if self.growth == 0.0:
            return Steps(steps.tau, steps.sigma, steps.eta, 1.0)
        ratio = 1.0 / math.sqrt(1.0 + self.growth * steps.tau)
        tau, sigma = steps.tau * ratio, steps.sigma / ratio
        return Steps(tau, sigma, tau / (self.local_steps * self.beta), ratio)


def step_rule(parameters: Mapping[str, float], sum_norm: float) -> StepRule:
    """Rule that the parameters ask for: the schedule where ``strong_convexity`` and ``smoothness`` are given.

    ``tau0`` and ``gamma0`` 0 stand for the largest that Assumption 8 allows; without ``coupling`` (L) it allows none,
    and sigma begins at ``dual_step``. ``ProblemError`` as for :func:`check_steps`.
    """
    check_steps(parameters)
    local_steps = int(parameters["local_steps"])
    m, M = parameters.get("strong_convexity", 0.0), parameters.get("smoothness", 0.0)
    sigma = parameters.get("dual_step", 1.0)
    if m == 0.0 and M == 0.0:
        first = Steps(parameters["global_step"], sigma, parameters["step_size"], 1.0)
        return StepRule(first, 0.0, 1.0, local_steps)
    slack = m - 2.0 * M * (sum_norm - 1.0)
    tau = parameters.get("tau0", 0.0) or _largest_tau(M, sum_norm, slack)
    coupling, room = parameters.get("coupling", 0.0), 1.0 - 27.0 * M * tau
    gamma, slow = parameters.get("gamma0", 0.0), 2.0 * coupling * tau
    # Where float64 has no square of so small a step, nothing is known of gamma, as without a coupling.
    if gamma == 0.0 and slow * slow >= _LEAST_SQUARE and room > 0.0:
        gamma = _C_ALPHA * room / (slow * slow)
    beta = max(1.0, 2.0 * tau * M)
    first = Steps(tau, gamma * tau or sigma, tau / (local_steps * beta), 1.0)
    return StepRule(first, max(slack / 4.0, 0.0), beta, local_steps)


def check_steps(parameters: Mapping[str, float]) -> None:
    """Refuse steps that cannot be taken.

    ``ProblemError`` for no local step, only one of the two curvatures, or curvatures in the wrong order.
    """
    if parameters["local_steps"] < 1:
        raise ProblemError(f"parameter local_steps must be at least 1, got {parameters['local_steps']:g}")
    m, M = parameters.get("strong_convexity", 0.0), parameters.get("smoothness", 0.0)
    if (m or M) and not 0.0 < m <= M:
        raise ProblemError(
            f"the schedule needs 0 < strong_convexity <= smoothness, got {m:g} and {M:g}; "
            "give neither for constant steps"
        )


def _largest_tau(smoothness: float, sum_norm: float, slack: float) -> float:
    least = 1.0 / (1200.0 * smoothness * sum_norm)
    return min(least, 18.0 * (1.0 + math.sqrt(3.0)) / slack) if slack > 0 else least


def fairness_note(parameters: Mapping[str, float], ambiguity: RelativeSet) -> str:
    """One line on a run: whether Theorem 3's proof holds for it, and for ``phi`` above 0 what the bounds speak of."""
    report = convexity_report(parameters, ambiguity)
    if report is not None:
        condition = str(report)
    else:
        condition = (
            f"||Lambda||_1 = {ambiguity.sum_norm():.6g}; whether this is below 1 + m_f/(2 M_f) cannot be said, "
            "for strong_convexity and smoothness are not given"
        )
    start = f"phi {ambiguity.phi:.4g}: {condition}"
    if ambiguity.phi == 0.0:
        return start
    return f"{start}; the lower bound is that of the convex part alone, so the gap need not close"


def convexity_report(parameters: Mapping[str, float], ambiguity: RelativeSet) -> Convexity | None:
    """Whether ``||Lambda||_1 < 1 + m/(2 M)`` (Assumption 8); None where the curvatures are not given."""
    m, M = parameters.get("strong_convexity", 0.0), parameters.get("smoothness", 0.0)
    return check_convexity(ambiguity, m, M) if M > 0.0 else None
