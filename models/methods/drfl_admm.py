r"""AD-LPMM of the DRFL paper (Algorithm 1), with a certificate in every round.

    server:  w, then z and t, then eta and gamma          (equations 6 to 10; models.methods.drfl_operators)
    site:    (w_s, pi_s) <- C_s(w, z_s, psi_s, zeta_s)    (models.methods.drfl_site)
    server:  sigma += c (t - z - gamma e - eta),   psi_s += c_weights (w - w_s),   zeta_s += c (pi_s - z_s)

It minimises ``max_{q in Q} sum_s q_s r_s(w)``, Q the ball around the site weights. Of psi, zeta and z a site sees only
its prox centre ``w + psi_s / c_weights`` and its target ``z_s - zeta_s / c``, so a site keeps nothing. Every answer
carries the exact risk at w (upper bound) and the minorant that the local step proves (lower bound). An absent site
keeps its last (w_s, pi_s, psi_s, zeta_s).

Its own numbers:

- ``c`` : step size, of the order of the radius over the sites by how far apart their risks are;
- ``c_weights`` : step size of ``w = w_s``, of the order of a site's share times how sharply its risk bends; 0 for the
  same c, as in the paper;
- ``tight`` : 1 for the least proximal constants, 0 for the paper's;
- ``batch`` : share of the rows in the client step;
- ``residual`` : 0, or the size of the primal and dual residuals at which to stop before the gap does.

The duals start at ``sigma = -q`` and ``zeta = q``, where they end when the sites' risks are alike. The evidence keeps
the cuts of the last rounds and those that the lower bound has use for: any subset proves its bound, and the method may
need many rounds. Prefer the level bundle where rounds are dear.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from models.cut_model import ModelPoint
from models.methods.certified import CertifiedServer
from models.methods.drfl_operators import Duals, Heights, Local, Steps, consensus, move_duals, move_heights, residuals
from models.methods.drfl_site import DrflSite
from models.methods.evidence import Evidence, no_evidence, raise_lower, record, unpack_evidence
from models.problem import Arrays, FloatArray, ServerProblem, Status

_RECENT = 4
"""Rounds whose cuts are kept whether or not the bound has use for them."""
_OF_USE = 1e-9
"""Multipliers up to here are what an interior point leaves of zero."""


@dataclass(frozen=True)
class DrflState:
    """What is asked (``point`` (D,), ``heights``), what was before it, the sites' answers, duals and residuals."""

    evidence: Evidence
    point: FloatArray
    heights: Heights
    before: Heights
    local: Local
    duals: Duals
    residuals: FloatArray


@dataclass(frozen=True)
class DrflServer(CertifiedServer[DrflState]):
    """Server half of AD-LPMM."""

    def init(self, problem: ServerProblem) -> DrflState:
        """All variables 0 and the duals where they end for equal risks, then the first half of a step."""
        n_sites, weights = len(problem.sites), _weights(problem)
        nothing = np.zeros(n_sites)
        zero = Heights(nothing, nothing, nothing, 0.0)
        local = Local(np.zeros((n_sites, problem.dimension)), nothing)
        duals = Duals(-weights, np.zeros((n_sites, problem.dimension)), weights)
        unknown = np.full(2, np.inf)
        return _ask(DrflState(no_evidence(problem), local.weights[0], zero, zero, local, duals, unknown), problem)

    def messages(self, state: DrflState, problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """Consensus point, the site's prox centre and target, and the number of the round to draw rows by."""
        steps, draw = _steps(problem), np.array(float(state.evidence.points.shape[0]))
        target = state.heights.z - state.duals.zeta / steps.size
        return {
            site.site_id: {
                "point": state.point,
                "centre": state.point + state.duals.psi[s] / steps.weights,
                "target": np.array(target[s]),
                "draw": draw,
            }
            for s, site in enumerate(problem.sites)
        }

    def step(self, state: DrflState, problem: ServerProblem, answers: Mapping[str, Arrays]) -> DrflState:
        """Take the local answers, move the duals, measure the residuals, move the first half again."""
        evidence, bottom = raise_lower(record(state.evidence, problem, state.point, answers), problem)
        weights, risks = state.local.weights.copy(), state.local.risks.copy()
        here = np.zeros(len(problem.sites))
        for s, site in enumerate(problem.sites):
            if site.site_id in answers:
                answer = answers[site.site_id]
                weights[s], risks[s], here[s] = answer["local_point"], answer["local_risk"], 1.0
        local, steps = Local(weights, risks), _steps(problem)
        left = residuals(state.point, state.heights, state.before, local, state.local, steps)
        duals = move_duals(state.duals, state.point, state.heights, local, steps, here)
        moved = replace(
            state, evidence=_pruned(evidence, bottom, problem), local=local, duals=duals, residuals=np.array(left)
        )
        return _ask(moved, problem)

    def status(self, state: DrflState, problem: ServerProblem) -> Status:
        """Certified at the wanted gap, or residuals as small as asked for."""
        status = super().status(state, problem)
        if status is Status.CONTINUE and state.residuals.max() <= problem.parameters["residual"]:
            return Status.SMALL_RESIDUALS
        return status

    def answer_shapes(self, problem: ServerProblem) -> dict[str, tuple[int, ...]]:
        """Risk and its cut, local weights and risk, minorant."""
        return DrflSite().shapes(problem.dimension)

    def pack(self, state: DrflState) -> dict[str, FloatArray]:
        """Evidence and all variables."""
        parts = {"point": state.point, "residuals": state.residuals}
        for name, heights in (("heights", state.heights), ("before", state.before)):
            parts[name] = np.stack([heights.t, heights.z, heights.eta, np.full_like(heights.t, heights.gamma)])
        parts |= {"weights": state.local.weights, "risks": state.local.risks}
        parts |= {"sigma": state.duals.sigma, "psi": state.duals.psi, "zeta": state.duals.zeta}
        return {**state.evidence.pack(), **{_PREFIX + name: array for name, array in parts.items()}}

    def unpack(self, arrays: Arrays) -> DrflState:
        """State from :meth:`pack`."""
        own = ((name, np.asarray(array)) for name, array in arrays.items() if name.startswith(_PREFIX))
        parts = {name.removeprefix(_PREFIX): array for name, array in own}
        heights, before = (
            Heights(parts[name][0], parts[name][1], parts[name][2], float(parts[name][3, 0]))
            for name in ("heights", "before")
        )
        local = Local(parts["weights"], parts["risks"])
        duals = Duals(parts["sigma"], parts["psi"], parts["zeta"])
        return DrflState(unpack_evidence(arrays), parts["point"], heights, before, local, duals, parts["residuals"])


_PREFIX = "admm_"


def _ask(state: DrflState, problem: ServerProblem) -> DrflState:
    """Move w, z, t, eta and gamma: none of them waits for the sites' next answers."""
    steps, weights = _steps(problem), _weights(problem)
    heights = move_heights(state.heights, state.local, state.duals, steps, weights, problem.mixture)
    point = consensus(state.local, state.duals, steps)
    return replace(state, point=point, heights=heights, before=state.heights)


def _pruned(evidence: Evidence, bottom: ModelPoint, problem: ServerProblem) -> Evidence:
    """Evidence without the cuts that are neither recent nor of use to the bound."""
    keep = bottom.multipliers > _OF_USE
    keep[-2 * _RECENT * len(problem.sites) :] = True
    return replace(
        evidence,
        cut_site=evidence.cut_site[keep],
        cut_offset=evidence.cut_offset[keep],
        cut_slope=evidence.cut_slope[keep],
        cut_norm_weight=evidence.cut_norm_weight[keep],
    )


def _weights(problem: ServerProblem) -> FloatArray:
    return np.array([site.weight for site in problem.sites])


def _steps(problem: ServerProblem) -> Steps:
    given = problem.parameters
    return Steps.of(given["c"], given["c_weights"], len(problem.sites), tight=given["tight"] != 0)
