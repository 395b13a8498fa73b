r"""SM: the subgradient method of the FDR-SVM paper (Algorithm 1), with a certificate.

    w <- w - step_size / t^step_power * sum_g q_g v_g,      v_g a subgradient of the worst-case risk r_g at w

q is the worst mixture of the sites at w: the site weights a_g where they are fixed, as they are in the paper.

``step_power`` 1 is the step of the paper's text, 0.5 that of its published code. The best point is remembered, and the
answers serve as cuts for the lower bound. Where the step is none but for rounding the run has stalled. An absent site
enters by the subgradient of its cut model. Prefer the level bundle, which gets the same messages and needs a tenth of
the rounds; this method is here to be compared with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.basics import Arrays
from models.cuts.bounds import record, tighten_lower_bound
from models.cuts.evidence import cut_model, risks_or_models
from models.geometry.norms import steepest_move
from models.methods.certified import PointServer, PointState, is_still
from models.methods.site_answers import RiskSite
from models.problem import ServerProblem
from models.site_ambiguity.ball import worst_mixture


@dataclass(frozen=True)
class SubgradientServer(PointServer[PointState]):
    """Server half of SM."""

    state = PointState
    asks = RiskSite()

    def step(self, state: PointState, problem: ServerProblem, answers: Mapping[str, Arrays]) -> PointState:
        """Add the cuts, bound the optimum, step against the weighted subgradients."""
        evidence = record(state.evidence, problem, state.point, answers)
        evidence, _ = tighten_lower_bound(evidence, problem)
        model = cut_model(evidence, problem)
        move = steepest_move(state.point[: problem.n_features], problem.transport_norm)
        shares = problem.weights
        mixture = worst_mixture(risks_or_models(evidence, problem, -1), shares, problem.mixture).weights
        slopes, norm_weights = model.site_slopes(state.point)
        direction = mixture @ slopes
        direction[: problem.n_features] += float(mixture @ norm_weights) * move
        step = problem.parameters["step_size"] / evidence.points.shape[0] ** problem.parameters["step_power"]
        moved = step * direction
        stagnated = is_still(float(np.abs(moved).max()), state.point, evidence.upper)
        return PointState(evidence, state.point - moved, stagnated=stagnated)
