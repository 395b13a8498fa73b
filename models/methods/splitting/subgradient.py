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

from models.ambiguity import steepest_move
from models.methods.certified import CertifiedServer
from models.methods.evidence import (
    Evidence,
    cut_model,
    no_evidence,
    raise_lower,
    record,
    risks_or_models,
    unpack_evidence,
)
from models.methods.site_answers import RiskSite
from models.mixture import worst_mixture
from models.problem import Arrays, FloatArray, ServerProblem


@dataclass(frozen=True)
class SubgradientState:
    """Evidence and the point (D,) that is asked next."""

    evidence: Evidence
    point: FloatArray


@dataclass(frozen=True)
class SubgradientServer(CertifiedServer[SubgradientState]):
    """Server half of SM."""

    def init(self, problem: ServerProblem) -> SubgradientState:
        """Start from zero weights."""
        return SubgradientState(no_evidence(problem), np.zeros(problem.dimension))

    def messages(self, state: SubgradientState, problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """The same point for every site."""
        return {site.site_id: {"point": state.point} for site in problem.sites}

    def step(self, state: SubgradientState, problem: ServerProblem, answers: Mapping[str, Arrays]) -> SubgradientState:
        """Add the cuts, bound the optimum, step against the weighted subgradients."""
        evidence = record(state.evidence, problem, state.point, answers)
        evidence, _ = raise_lower(evidence, problem)
        model = cut_model(evidence, problem)
        move = steepest_move(state.point[: problem.n_features], problem.transport_norm)
        shares = np.array([site.weight for site in problem.sites])
        mixture = worst_mixture(risks_or_models(evidence, problem, -1), shares, problem.mixture).weights
        direction = np.zeros_like(state.point)
        for g, site in enumerate(problem.sites):
            answer = answers.get(site.site_id)
            if answer is None:
                slope, norm_weight = model.site_slope(g, state.point)
            else:
                slope, norm_weight = answer["slope"], float(answer["norm_weight"])
            direction += mixture[g] * slope
            direction[: problem.n_features] += mixture[g] * norm_weight * move
        step = problem.parameters["step_size"] / evidence.points.shape[0] ** problem.parameters["step_power"]
        return SubgradientState(evidence, state.point - step * direction)

    def answer_shapes(self, problem: ServerProblem) -> dict[str, tuple[int, ...]]:
        """Risk and its cut."""
        return RiskSite().shapes(problem.dimension)

    def pack(self, state: SubgradientState) -> dict[str, FloatArray]:
        """Evidence and next point."""
        return {**state.evidence.pack(), "point": state.point}

    def unpack(self, arrays: Arrays) -> SubgradientState:
        """State from :meth:`pack`."""
        return SubgradientState(unpack_evidence(arrays), np.asarray(arrays["point"]))
