r"""AD-LPMM of the DRFL paper (Algorithm 1), with a certificate in every round.

    server:  w, then z and t, then eta and gamma          (equations 6 to 10; ad_lpmm_operators)
    site:    (w_s, pi_s) <- C_s(w, z_s, psi_s, zeta_s)    (ad_lpmm_site)
    server:  sigma += c (t - z - gamma e - eta),   psi_s += c_weights (w - w_s),   zeta_s += c (pi_s - z_s)

It minimises ``max_{q in Q} sum_s q_s r_s(w)``, Q the ball around the site weights. Of psi, zeta and z a site sees only
its prox centre ``w + psi_s / c_weights`` and its target ``z_s - zeta_s / c``, so a site keeps nothing. Every answer
carries the exact risk at a point (upper bound) and the minorant that the local step proves (lower bound). An absent
site keeps its last (w_s, pi_s, psi_s, zeta_s).

Its own numbers:

- ``c`` : step size of the constraints on the heights; 0 (the default) for sizes that follow from the data
  (models.methods.splitting.ad_lpmm_operators), for which the first round asks for the risks at 0 and takes no step;
- ``c_weights`` : step size of ``w = w_s``; 0 for the same as c, as in the paper. It goes with a c above 0;
- ``tight`` : 1 for the least proximal constants, 0 for the paper's;
- ``probe`` : every how manieth round the exact risk is asked at the minimiser of the cut model instead of at w; 0 for
  never, the paper's own iterates alone;
- ``batch`` : share of the rows in the client step;
- ``residual`` : 0, or the size of the primal and dual residuals at which to stop before the gap does.

The iterates do not depend on the probes: w, the local steps and the duals are those of Algorithm 1 with or without
them. ADMM comes near quickly and ends slowly, above all where the loss has corners; the cuts that its local steps prove
have by then the shape of the risk around the optimum, and their minimiser is a better model than w.

The duals start at ``sigma = -q`` and ``zeta = q``, where they end when the sites' risks are alike. Where cuts
are many the evidence keeps those of the last rounds and those that the lower bound has use for: any subset proves its
bound, and the method may need many rounds. Prefer the level bundle where rounds are dear.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from models.basics import Arrays, FloatArray, ProblemError
from models.cuts.bounds import record, tighten_lower_bound
from models.cuts.cut_model import ModelPoint
from models.cuts.evidence import Evidence
from models.methods.answer_arrays import present, stacked
from models.methods.certified import CertifiedServer, State
from models.methods.splitting.ad_lpmm_operators import (
    Duals,
    Heights,
    Local,
    Steps,
    balanced,
    consensus,
    first_sizes,
    move_duals,
    move_heights,
    residuals,
)
from models.methods.splitting.ad_lpmm_site import DrflSite
from models.problem import ServerProblem, Status

_RECENT = 4
"""Rounds whose cuts are kept whether or not the bound has use for them."""
_CUTS_EACH = 12
"""So many cuts for each weight and each site are kept whatever they are."""
_OF_USE = 1e-9
"""Multipliers up to here are what an interior point leaves of zero."""
_NOTHING = 1e-14
"""Share of the first risk at which what is left of it is rounding: the optimum is 0, and no relative gap closes."""


@dataclass(frozen=True)
class DrflState(State):
    """Consensus ``point`` w (D,), ``heights``, those ``before``, the sites' answers, duals, residuals (2,).

    ``sizes`` (2,) are c and c_weights, 0 where the data have yet to give them; ``probe`` (D,) is where the risk is
    asked next.
    """

    point: FloatArray
    probe: FloatArray
    heights: Heights
    before: Heights
    local: Local
    duals: Duals
    residuals: FloatArray
    sizes: FloatArray

    @property
    def sized(self) -> bool:
        """Whether the step sizes are known."""
        return bool(self.sizes[0] > 0)


@dataclass(frozen=True)
class DrflServer(CertifiedServer[DrflState]):
    """Server half of AD-LPMM."""

    asks = DrflSite()

    def asked(self, state: DrflState) -> FloatArray:
        """Where the risk is asked, which need not be where the iterates are."""
        return state.probe

    def of_sites(self, state: DrflState, problem: ServerProblem, kept: Sequence[int]) -> DrflState:
        """A new start of the iterates, whose heights and duals belong to all sites together; the cuts stay."""
        return replace(self.init(problem), evidence=state.evidence.of_sites(kept))

    def init(self, problem: ServerProblem) -> DrflState:
        """All variables 0 and the duals where they end for equal risks; the first half of a step if c is given."""
        n_sites, weights = len(problem.sites), problem.weights
        nothing, origin = np.zeros(n_sites), np.zeros(problem.dimension)
        zero = Heights(nothing, nothing, nothing, 0.0)
        local = Local(np.zeros((n_sites, problem.dimension)), nothing)
        duals = Duals(-weights, np.zeros((n_sites, problem.dimension)), weights)
        size = problem.parameters["c"]
        sizes = np.array([size, problem.parameters["c_weights"] or size])
        unknown = np.full(2, np.inf)
        state = DrflState(Evidence.empty(problem), origin, origin, zero, zero, local, duals, unknown, sizes)
        return _ask(state, problem, None) if state.sized else state

    def messages(self, state: DrflState, problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """Point to judge, the site's prox centre and target, and the number of the round to draw rows by."""
        common = {"point": state.probe, "draw": np.array(float(state.evidence.points.shape[0]))}
        if not state.sized:
            no_step = {**common, "centre": state.point, "target": np.array(0.0), "stiffness": np.array(0.0)}
            return {site.site_id: no_step for site in problem.sites}
        size, weight_size = state.sizes
        target = state.heights.z - state.duals.zeta / size
        return {
            site.site_id: {
                **common,
                "centre": state.point + state.duals.psi[s] / weight_size,
                "target": np.array(target[s]),
                "stiffness": np.array(size / weight_size),
            }
            for s, site in enumerate(problem.sites)
        }

    def step(self, state: DrflState, problem: ServerProblem, answers: Mapping[str, Arrays]) -> DrflState:
        """Take the local answers, move the duals, measure the residuals, move the first half again."""
        evidence, model_minimiser = tighten_lower_bound(record(state.evidence, problem, state.probe, answers), problem)
        if not state.sized:
            return _sized(replace(state, evidence=evidence), problem, answers)
        weights, risks = state.local.weights, state.local.risks
        local = Local(
            stacked(problem, answers, "local_point", weights), stacked(problem, answers, "local_risk", risks)
        )
        here, steps = present(problem, answers).astype(np.float64), _steps(state, problem)
        left = residuals(state.point, state.heights, state.before, local, state.local, steps)
        duals = move_duals(state.duals, state.point, state.heights, local, steps, here)
        moved = replace(
            state, evidence=_pruned(evidence, model_minimiser, problem), local=local, duals=duals,
            residuals=np.array(left),
        )
        if problem.parameters["c"] == 0 and here.all():
            number = evidence.points.shape[0]
            heights = (state.heights, state.before)
            moved = replace(moved, sizes=balanced(number, steps, state.point, heights, (local, state.local), duals))
        return _ask(moved, problem, model_minimiser)

    def status(self, state: DrflState, problem: ServerProblem) -> Status:
        """Certified at the wanted gap, residuals as small as asked for, or a risk of which nothing is left."""
        status, wanted = super().status(state, problem), problem.parameters["residual"]
        if status is not Status.CONTINUE:
            return status
        if wanted > 0 and state.residuals.max() <= wanted:
            return Status.SMALL_RESIDUALS
        first = np.nan_to_num(state.evidence.risks[:1])  # a site that did not answer has none
        return Status.STALLED if state.evidence.upper <= _NOTHING * first.max(initial=0.0) else status

    def pack(self, state: DrflState) -> dict[str, FloatArray]:
        """Evidence and all variables."""
        parts = {"point": state.point, "probe": state.probe, "residuals": state.residuals, "sizes": state.sizes}
        for name, heights in (("heights", state.heights), ("before", state.before)):
            parts[name] = np.stack([heights.t, heights.z, heights.eta, np.full_like(heights.t, heights.gamma)])
        parts |= {**vars(state.local), **vars(state.duals)}
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
        return DrflState(
            Evidence.unpack(arrays), parts["point"], parts["probe"], heights, before, local, duals, parts["residuals"],
            parts["sizes"],
        )


_PREFIX = "admm_"


def _sized(state: DrflState, problem: ServerProblem, answers: Mapping[str, Arrays]) -> DrflState:
    """Step sizes and heights from the risks at 0; asked again where no site answered."""
    if not answers:
        return state
    mean = float(np.mean([float(answer["risk"]) for answer in answers.values()]))
    risks = stacked(problem, answers, "risk", np.full(len(problem.sites), mean))
    middle = float(risks.mean())
    heights = Heights(risks - middle, risks, np.zeros_like(risks), -middle)
    local = Local(state.local.weights, risks)
    return _ask(replace(state, sizes=first_sizes(answers, len(risks)), heights=heights, local=local), problem, None)


def _ask(state: DrflState, problem: ServerProblem, model_minimiser: ModelPoint | None) -> DrflState:
    """Move w, z, t, eta and gamma: none of them waits for the sites' next answers; choose where to ask the risk."""
    steps = _steps(state, problem)
    heights = move_heights(state.heights, state.local, state.duals, steps, problem.weights, problem.mixture)
    point = probe = consensus(state.local, state.duals, steps)
    every, number = int(problem.parameters["probe"]), state.evidence.points.shape[0]
    if model_minimiser is not None and every and number % every == 0 and np.isfinite(model_minimiser.point).all():
        probe = model_minimiser.point
    return replace(state, point=point, probe=probe, heights=heights, before=state.heights)


def _pruned(evidence: Evidence, model_minimiser: ModelPoint, problem: ServerProblem) -> Evidence:
    """Evidence without the cuts that are neither recent nor of use to the bound, where there are many."""
    if evidence.cut_site.shape[0] <= _CUTS_EACH * (problem.dimension + len(problem.sites)):
        return evidence
    keep = model_minimiser.multipliers > _OF_USE
    keep[-2 * _RECENT * len(problem.sites) :] = True
    return evidence.kept_cuts(keep)


def _steps(state: DrflState, problem: ServerProblem) -> Steps:
    size, weight_size = (float(each) for each in state.sizes)
    return Steps.of(size, weight_size, len(problem.sites), tight=problem.parameters["tight"] != 0)


def check_sizes(parameters: Mapping[str, float]) -> None:
    """Refuse a step size for the weights beside one for the heights that the data are to give.

    :class:`ProblemError` says which.
    """
    if parameters["c"] == 0 and parameters["c_weights"] > 0:
        raise ProblemError("parameter c_weights goes with a c above 0; leave both at 0 for sizes from the data")
