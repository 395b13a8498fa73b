r"""ADMM and ADMM-SC of the FDR-SVM paper (Algorithm 2), with a certificate in every round.

    site:    w_g  <- argmin r_g(w_g) + tau ||w_g||^2 + rho/2 ||w_g - w + mu_g||^2
    server:  w    <- sum_g a_g (w_g + mu_g)
             mu_g <- mu_g + w_g - w

The duals mu_g live in the server's state and each site is sent its prox centre ``w - mu_g``, so a site keeps nothing.
Every answer carries the exact risk at w (upper bound) and the minorant that the local step proves (lower bound), both
of the risks r_g as they are: with tau > 0 the certificate still speaks of the problem without the ridge, whose optimum
ADMM-SC does not reach, so its gap levels off above zero.

The paper calls plain ADMM unproven for three sites or more. Consensus ADMM has two blocks only (all w_g together, then
w), so it converges for closed proper convex risks (Eckstein and Bertsekas 1992) and the ridge is not needed for that;
ADMM-SC is here for parity. ADMM-REG, the regularised SVM, has an infinite label flip cost: labels are trusted. An
absent site keeps its last (w_g, mu_g).

On sums (``models.cohorts``) the server half is the same with a cohort's mean of w_g and mu_g for a site's; the plants
keep their own mu_g. ADMM-SC's smallest ridge goes by the weights of single sites, so it is not on sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.basics import Arrays, FloatArray, ProblemError
from models.cuts.bounds import record, tighten_lower_bound
from models.cuts.evidence import Evidence
from models.methods.answer_arrays import present, stacked
from models.methods.certified import PointServer, PointState
from models.methods.site_answers import AdmmSite
from models.problem import ServerProblem


@dataclass(frozen=True)
class AdmmState(PointState):
    """Evidence, consensus ``point`` (D,), local weights ``local`` (G, D) and scaled duals ``dual`` (G, D)."""

    local: FloatArray
    dual: FloatArray


@dataclass(frozen=True)
class AdmmServer(PointServer[AdmmState]):
    """Server half of ADMM; ``strongly_convex`` adds the ridge of ADMM-SC."""

    strongly_convex: bool = False
    state = AdmmState
    asks = AdmmSite()
    per_site = ("local", "dual")

    def init(self, problem: ServerProblem) -> AdmmState:
        """Weights 0 and duals ``mu0``, as in the paper."""
        shape = (len(problem.sites), problem.dimension)
        dual = np.full(shape, problem.parameters["mu0"])
        return AdmmState(Evidence.empty(problem), np.zeros(problem.dimension), np.zeros(shape), dual)

    def messages(self, state: AdmmState, problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """Consensus point, the site's own prox centre, penalty and ridge."""
        penalty, ridge = np.array(problem.parameters["rho"]), np.array(self._ridge(problem))
        return {
            site.site_id: {
                "point": state.point,
                "centre": state.point - state.dual[g],
                "penalty": penalty,
                "ridge": ridge,
            }
            for g, site in enumerate(problem.sites)
        }

    def step(self, state: AdmmState, problem: ServerProblem, answers: Mapping[str, Arrays]) -> AdmmState:
        """Take the local weights, average, move the duals of the sites that answered."""
        evidence, _ = tighten_lower_bound(record(state.evidence, problem, state.point, answers), problem)
        local = stacked(problem, answers, "local_point", state.local)
        point = problem.weights @ (local + state.dual)
        dual = np.where(present(problem, answers)[:, None], state.dual + local - point, state.dual)
        return AdmmState(evidence, point, local, dual)

    def _ridge(self, problem: ServerProblem) -> float:
        if not self.strongly_convex:
            return 0.0
        return problem.parameters["tau"] or smallest_ridge(problem, problem.parameters["rho"])


def smallest_ridge(problem: ServerProblem, rho: float) -> float:
    r"""Smallest ridge tau, the same for all sites, with which FDR Theorem 3 proves ADMM-SC for ``rho``.

        rho <= min_{g < G} 4 a_g tau / (g (2G + 1 - g))   and   rho <= 4 a_G tau / ((G - 1)(G + 2))

    18 rho for four sites of equal weight; 0 for one site.

    :class:`ProblemError` for a site whose weight is 0: no ridge is large enough.
    """
    weights, n_sites = problem.weights, len(problem.sites)
    if n_sites > 1 and weights.min() <= 0:
        raise ProblemError("ADMM-SC needs every site weight above 0: its smallest ridge is infinite otherwise")
    needs = [g * (2 * n_sites + 1 - g) / (4 * weights[g - 1]) for g in range(1, n_sites)]
    last = (n_sites - 1) * (n_sites + 2) / (4 * weights[-1])
    return float(rho * max([*needs, last]))
