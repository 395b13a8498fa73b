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
ADMM-SC is here for parity. An absent site keeps its last (w_g, mu_g).

On sums (``models.cohorts``) the server half is the same with a cohort's mean of w_g and mu_g for a site's; the plants
keep their own mu_g. ADMM-SC's smallest ridge goes by the weights of single sites, so it is not on sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from models.basics import Arrays, FloatArray, ProblemError
from models.cuts.evidence import Evidence, no_evidence, record, tighten_lower_bound, unpack_evidence
from models.methods.certified import CertifiedServer
from models.methods.site_answers import AdmmSite
from models.problem import ServerProblem, SiteProblem


@dataclass(frozen=True)
class AdmmState:
    """Evidence, consensus ``point`` (D,), local weights ``local`` (G, D) and scaled duals ``dual`` (G, D)."""

    evidence: Evidence
    point: FloatArray
    local: FloatArray
    dual: FloatArray


@dataclass(frozen=True)
class AdmmServer(CertifiedServer[AdmmState]):
    """Server half of ADMM; ``strongly_convex`` adds the ridge of ADMM-SC."""

    strongly_convex: bool = False
    per_site = ("local", "dual")

    def asked(self, state: AdmmState) -> FloatArray:
        """The consensus point."""
        return state.point

    def init(self, problem: ServerProblem) -> AdmmState:
        """Weights 0 and duals ``mu0``, as in the paper."""
        shape = (len(problem.sites), problem.dimension)
        dual = np.full(shape, problem.parameters["mu0"])
        return AdmmState(no_evidence(problem), np.zeros(problem.dimension), np.zeros(shape), dual)

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
        local, here = state.local.copy(), np.zeros(len(problem.sites), dtype=bool)
        for g, site in enumerate(problem.sites):
            if site.site_id in answers:
                local[g], here[g] = answers[site.site_id]["local_point"], True
        weights = problem.weights
        point = weights @ (local + state.dual)
        dual = np.where(here[:, None], state.dual + local - point, state.dual)
        return AdmmState(evidence, point, local, dual)

    def answer_shapes(self, problem: ServerProblem) -> dict[str, tuple[int, ...]]:
        """Risk, subgradient, local weights and minorant."""
        return AdmmSite().shapes(problem.dimension, problem.n_swings)

    def pack(self, state: AdmmState) -> dict[str, FloatArray]:
        """Evidence, consensus, local weights and duals."""
        return {**state.evidence.pack(), "point": state.point, "local": state.local, "dual": state.dual}

    def unpack(self, arrays: Arrays) -> AdmmState:
        """State from :meth:`pack`."""
        point, local, dual = (np.asarray(arrays[name]) for name in ("point", "local", "dual"))
        return AdmmState(unpack_evidence(arrays), point, local, dual)

    def _ridge(self, problem: ServerProblem) -> float:
        if not self.strongly_convex:
            return 0.0
        return problem.parameters["tau"] or smallest_ridge(problem, problem.parameters["rho"])


@dataclass(frozen=True)
class RegularisedSite:
    """Site half of ADMM-REG: labels are trusted (label flip cost infinite), which is the regularised SVM."""

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> dict[str, FloatArray]:
        """As ADMM, for ``radius ||w||_* + mean hinge``."""
        return AdmmSite().answer(self._trusting(problem), message, parameters)

    def answer_remembering(
        self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float], memory: Arrays
    ) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
        """The same, as a plant of a cohort."""
        return AdmmSite().answer_remembering(self._trusting(problem), message, parameters, memory)

    def _trusting(self, problem: SiteProblem) -> SiteProblem:
        return replace(problem, spec=replace(problem.spec, label_flip_cost=float("inf")))


def smallest_ridge(problem: ServerProblem, rho: float) -> float:
    r"""Smallest ridge tau, the same for all sites, with which FDR Theorem 3 proves ADMM-SC for ``rho``.

        rho <= min_{g < G} 4 a_g tau / (g (2G + 1 - g))   and   rho <= 4 a_G tau / ((G - 1)(G + 2))

    18 rho for four sites of equal weight; 0 for one site.
    """
    weights, n_sites = [site.weight for site in problem.sites], len(problem.sites)
    if n_sites > 1 and min(weights) <= 0:
        raise ProblemError("ADMM-SC needs every site weight above 0: its smallest ridge is infinite otherwise")
    needs = [g * (2 * n_sites + 1 - g) / (4 * weights[g - 1]) for g in range(1, n_sites)]
    last = (n_sites - 1) * (n_sites + 2) / (4 * weights[-1])
    return rho * max([*needs, last])
