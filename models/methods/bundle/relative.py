r"""Relative fairness over worst-case risks by a level bundle: an outer convex-concave loop whose cuts are never lost.

The objective ``F(w) = max_{lambda in Lambda_phi(A, B)} sum_g lambda_g r_g(w)`` is a difference of convex functions
(``fairness.relative_risk``). Around the centre u, a visited point, the server keeps the convex majorant M_u, and asks
where a level bundle of M_u would: at the projection of the best visited point of M_u on a level set of its cut model. A
cut of a site's risk holds whatever the centre, so a new centre starts with all that is known. The centre moves to a
visited point that is lower in F by a tenth of what M_u could still give.

The first stage is the same with ``phi = 0``, which is convex and certified; the second starts at its solution w_0. The
weights kept are never above w_0 in F, so their R over A and B is not above that of w_0 either (but for the gap).

What is certified, and what is not:

- the certificate's ``upper`` is F at the weights, exactly; its ``lower`` is a bound on F everywhere, from the members
  of Lambda without negative weights and from max_A alone. They need not meet: where the worst lambda has negative
  entries, a gap stays;
- the run ends as ``CRITICAL`` when M_u, the convex part, is solved to the wanted gap: no change of the weights that M_u
  sees makes F lower. F itself is not convex, so a better model may exist;
- with ``phi = 0`` F is convex, and the certificate closes.

Site weights count: A and B are capped at ``weight / alpha`` and ``weight / beta``; equal weights give the paper's sets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from models.basics import Arrays, FloatArray
from models.cuts.bounds import counted_risks, record
from models.cuts.certificate import combined_certificate
from models.cuts.cut_program import minimise, project
from models.cuts.evidence import Evidence, cut_model, risks_or_models
from models.fairness.ambiguity_set import RelativeSet
from models.fairness.relative_risk import Majorant, global_bound, reach_of
from models.methods.certified import PointServer, PointState, is_still
from models.methods.site_answers import RiskSite
from models.problem import Certificate, ServerProblem, Status

_SERIOUS = 0.1
"""Share of what the majorant could still give by which a new centre is lower: a serious step of a bundle method."""


@dataclass(frozen=True)
class RelativeState(PointState):
    """Evidence, the next point (D,), and the centre: its round, the value there, and the bound of its majorant.

    ``since``: the first round after the centre was chosen. ``first``: stagnated in the stage with ``phi = 0``, to which
    centre, value and bound belong then. ``stagnated``: the next point is one that was asked already.
    """

    first: bool = True
    centre: int = -1
    since: int = 0
    centre_value: float = math.inf
    convex_lower: float = -math.inf

    @property
    def convex_part(self) -> Certificate:
        """F at the centre, and how low the majorant around it can be at most."""
        lower = min(self.convex_lower, self.centre_value)
        return Certificate(self.centre_value, lower, self.evidence.fresh_weight, self.evidence.scale)


@dataclass(frozen=True)
class RelativeServer(PointServer[RelativeState]):
    """Server half of the relative-fairness bundle."""

    state = RelativeState
    asks = RiskSite()

    def of_sites(self, state: RelativeState, problem: ServerProblem, kept: Sequence[int]) -> RelativeState:
        """The first stage anew: the centre of the second was chosen among the risks of all sites."""
        return RelativeState(state.evidence.of_sites(kept), state.point)

    def step(self, state: RelativeState, problem: ServerProblem, answers: Mapping[str, Arrays]) -> RelativeState:
        """Add the cuts, bound F, and take the next point of the stage; the second stage begins where the first ends."""
        ambiguity = ambiguity_of(problem)
        evidence = record(state.evidence, problem, state.point, answers)
        risks = counted_risks(evidence, problem)
        evidence = evidence.judged_by(ambiguity.totals(risks))
        # The site weights are in A and in B, so F is at least max_A alone, which is what the first stage bounds.
        plain = replace(ambiguity, phi=0.0)
        bound = global_bound(cut_model(evidence, problem), plain if state.first else ambiguity, evidence.best_point)
        bound = min(bound, evidence.upper)
        state = replace(state, evidence=replace(evidence, lower=max(evidence.lower, bound)))
        if state.first:
            found = _turn(state, problem, plain, risks)
            if not (found.convex_part.meets(problem.gap, problem.absolute_gap) or found.stagnated):
                return found
            start = int(np.argmin(plain.totals(risks)))
            state = replace(state, first=False, centre=start, since=len(risks), convex_lower=-math.inf)
        return _turn(state, problem, ambiguity, risks)

    def status(self, state: RelativeState, problem: ServerProblem) -> Status:
        """Certified where both bounds of F meet; critical where the convex part's do; stalled where nothing moves."""
        status = super().status(state, problem)
        if status is not Status.CONTINUE:
            return status
        near = state.convex_part.meets(problem.gap, problem.absolute_gap)
        if state.first or not (near or state.stagnated):
            return Status.CONTINUE
        return Status.CRITICAL if near else Status.STALLED

    def convex_part(self, state: RelativeState) -> Certificate:
        """F at the centre, and the bound of the majorant around it: what tells a critical point, and no more."""
        return state.convex_part

    def note(self, states: Sequence[RelativeState], problem: ServerProblem) -> str:
        """What the certified gap belongs to, and what is known of the convex part."""
        phi = problem.parameters["phi"]
        if phi == 0.0:
            return "phi 0: the objective is convex, and the certified gap is that of the whole"
        if any(state.first for state in states):
            return f"phi {phi:.4g}: the run ended while it solved the convex problem of phi 0, where it starts"
        gap = combined_certificate([state.convex_part for state in states]).gap
        return (
            f"phi {phi:.4g}: the certified gap holds for the whole, which is not convex, and need not close; "
            f"the convex part around the last centre is solved to a gap of {gap:.3g}, which tells a critical point only"
        )

    def mixture_weights(self, state: RelativeState, problem: ServerProblem) -> dict[str, float]:
        """The worst lambda at the best weights; it sums to 1, and negative entries are sites that have it too well."""
        weights = problem.weights
        if state.evidence.best >= 0:
            weights = ambiguity_of(problem).member(risks_or_models(state.evidence, problem, state.evidence.best))
        return {site.site_id: float(weight) for site, weight in zip(problem.sites, weights, strict=True)}

    def pack(self, state: RelativeState) -> dict[str, FloatArray]:
        """Evidence, the next point and the centre."""
        parts = (state.first, state.centre, state.since, state.centre_value, state.convex_lower, state.stagnated)
        return {**state.evidence.pack(), "point": state.point, "centre": np.array([float(part) for part in parts])}

    def unpack(self, arrays: Arrays) -> RelativeState:
        """State from :meth:`pack`."""
        first, centre, since, value, lower, stagnated = (float(part) for part in arrays["centre"])
        return RelativeState(
            Evidence.unpack(arrays), arrays["point"], bool(first), int(centre), int(since), value, lower,
            stagnated=bool(stagnated),
        )


def ambiguity_of(problem: ServerProblem) -> RelativeSet:
    """Lambda of the plan's ``phi``, ``alpha`` and ``beta`` over its site weights."""
    return RelativeSet.of_weights(problem.weights, *(problem.parameters[name] for name in ("phi", "alpha", "beta")))


def _turn(state: RelativeState, problem: ServerProblem, ambiguity: RelativeSet, risks: FloatArray) -> RelativeState:
    """Move the centre where a point is lower by enough, bound its majorant, and find where to ask next."""
    points, model = state.evidence.points, cut_model(state.evidence, problem)
    values = ambiguity.totals(risks)
    centre = _next_centre(state, values)
    majorant = Majorant.around(points[centre], model, ambiguity)
    seen = [
        majorant.value(point, each) if math.isfinite(value) else math.inf
        for point, each, value in zip(points, risks, values, strict=True)
    ]
    best = points[int(np.argmin(seen))]
    model_minimiser = minimise(model, best, majorant.rule)
    reach = reach_of(model, float(values[centre]))
    lowest = majorant.value(model_minimiser.point, model.site_values(model_minimiser.point[None])[0])
    level = lowest + problem.parameters["level"] * max(min(seen) - lowest, 0.0)
    point = project(model, best, level - majorant.constant, majorant.rule).point
    moved = float(np.abs(points - point).max(axis=1).min())
    return replace(
        state,
        point=point,
        centre=centre,
        since=state.since if centre == state.centre else len(values),
        centre_value=float(values[centre]),
        convex_lower=majorant.bound(model, model_minimiser, reach),
        stagnated=is_still(moved, best, state.evidence.upper),
    )


def _next_centre(state: RelativeState, values: FloatArray) -> int:
    """The best point since the centre was chosen, where it is lower by enough; else the centre as it is."""
    if state.centre < 0 or not math.isfinite(values[state.centre]):
        return int(np.argmin(values))
    old = float(values[state.centre])
    wanted = old - _SERIOUS * (old - state.convex_lower if math.isfinite(state.convex_lower) else 0.0)
    if state.since >= len(values):
        return state.centre
    best = state.since + int(np.argmin(values[state.since :]))
    return best if values[best] < old and values[best] <= wanted else state.centre
