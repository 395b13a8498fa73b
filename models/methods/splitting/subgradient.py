r"""SM: the subgradient method of the FDR-SVM paper (Algorithm 1), with a certificate.

    w <- w - step_size / t^step_power * sum_g q_g v_g,      v_g a subgradient of the worst-case risk r_g at w

q is the worst mixture of the sites at w: the site weights a_g where they are fixed, as they are in the paper.

``step_power`` 1 is the step of the paper's text, 0.5 that of its published code. The best point is remembered, and the
answers serve as cuts for the lower bound. An absent site enters by the subgradient of its cut model. Prefer the level
bundle, which gets the same messages and needs a tenth of the rounds; this method is here to be compared with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.basics import Arrays, FloatArray
from models.cuts.evidence import (
    Evidence,
    cut_model,
    no_evidence,
    record,
    risks_or_models,
    tighten_lower_bound,
    unpack_evidence,
)
from models.geometry.norms import steepest_move
from models.methods.certified import CertifiedServer
from models.methods.site_answers import RiskSite
from models.problem import ServerProblem
from models.site_ambiguity.ball import worst_mixture


@dataclass(frozen=True)
class SubgradientState:
    """Evidence and the point (D,) that is asked next."""

    evidence: Evidence
    point: FloatArray


@dataclass(frozen=True)
class SubgradientServer(CertifiedServer[SubgradientState]):
    """Server half of SM."""

    def asked(self, state: SubgradientState) -> FloatArray:
        """The point."""
        return state.point

    def init(self, problem: ServerProblem) -> SubgradientState:
        """Start from zero weights."""
        return SubgradientState(no_evidence(problem), np.zeros(problem.dimension))

    def messages(self, state: SubgradientState, problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """The same point for every site."""
        return {site.site_id: {"point": state.point} for site in problem.sites}

    def step(self, state: SubgradientState, problem: ServerProblem, answers: Mapping[str, Arrays]) -> SubgradientState:
        """Add the cuts, bound the optimum, step against the weighted subgradients."""
        evidence = record(state.evidence, problem, state.point, answers)
        evidence, _ = tighten_lower_bound(evidence, problem)
        model = cut_model(evidence, problem)
        move = steepest_move(state.point[: problem.n_features], problem.transport_norm)
        shares = problem.weights
        mixture = worst_mixture(risks_or_models(evidence, problem, -1), shares, problem.mixture).weights
        direction = np.zeros_like(state.point)
        for g, site in enumerate(problem.sites):
            answer = answers.get(site.site_id)
            if answer is None:
                slope, norm_weight = model.site_slope(g, state.point)
            else:
                slope, norm_weight = answer["slope"], float(answer["norm_weight"])
                slope = slope.copy()
                slope[: problem.n_features] += np.sign(state.point[: problem.n_features]) * answer.get("swing", 0.0)
            direction += mixture[g] * slope
            direction[: problem.n_features] += mixture[g] * norm_weight * move
        step = problem.parameters["step_size"] / evidence.points.shape[0] ** problem.parameters["step_power"]
        return SubgradientState(evidence, state.point - step * direction)

    def answer_shapes(self, problem: ServerProblem) -> dict[str, tuple[int, ...]]:
        """Risk and its cut."""
        return RiskSite().shapes(problem.dimension, problem.n_swings)

    def pack(self, state: SubgradientState) -> dict[str, FloatArray]:
        """Evidence and next point."""
        return {**state.evidence.pack(), "point": state.point}

    def unpack(self, arrays: Arrays) -> SubgradientState:
        """State from :meth:`pack`."""
        return SubgradientState(unpack_evidence(arrays), np.asarray(arrays["point"]))
