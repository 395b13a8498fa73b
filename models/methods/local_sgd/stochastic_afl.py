r"""Stochastic AFL (Mohri et al. 2019): one stochastic step of the weights and one of the mixture in each round.

    w <- w - step_size sum_g lambda_g grad f_g(w; batch),   lambda <- nearest in Lambda to lambda + mixture_step f(w)

Both at the same w, in one exchange. With ``clients`` m > 0 the step is the mean of m sites drawn by lambda with
replacement, and the losses are those of m sites drawn evenly, times G / m, as in DRFA.
Lambda and ``worst_share`` are as in ``models.methods.local_sgd.drfa``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.basics import Arrays, FloatArray
from models.fairness.ambiguity_set import RelativeSet
from models.methods.local_sgd.drfa import first_mixture
from models.methods.local_sgd.rule import LocalRule, Memory, draw_number, message
from models.methods.local_sgd.sampled_sites import SampledRound, capped, mean_answer, nearest_weights, reported_losses
from models.problem import ServerProblem


@dataclass(frozen=True)
class StochasticAflRule(LocalRule):
    """One exchange a round. Memory: ``point`` (D,), ``round`` (), ``lambda`` and ``shares`` (G,) both the mixture."""

    def begin(self, problem: ServerProblem, point: FloatArray) -> Memory:
        """Start from a point, with the site weights for lambda."""
        mixture = first_mixture(problem)
        return {"point": point, "round": np.array(0.0), "lambda": mixture, "shares": mixture}

    def messages(self, memory: Memory, problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """One step from the point for the sites drawn."""
        numbers, finished = problem.parameters, float(memory["round"])
        drawn = self._drawn(memory, problem)
        size = numbers["step_size"] / (finished + 1.0) ** numbers["step_power"]
        return {
            site.site_id: message(
                memory["point"],
                step_size=size if drawn.stepping[g] > 0 else 0.0,
                draw=draw_number(numbers["seed"], finished, g),
            )
            for g, site in enumerate(problem.sites)
        }

    def advance(self, memory: Memory, problem: ServerProblem, answers: Mapping[str, Arrays]) -> Memory:
        """Descend in the weights, climb in the mixture."""
        drawn = self._drawn(memory, problem)
        losses = reported_losses(problem, answers, "risk", drawn.telling)
        mixture = nearest_weights(problem, memory["lambda"] + problem.parameters["mixture_step"] * losses)
        point = mean_answer(problem, answers, "local_point", drawn.stepping, memory["point"])
        return {"point": point, "round": memory["round"] + 1.0, "lambda": mixture, "shares": mixture}

    def ambiguity(self, problem: ServerProblem) -> RelativeSet | None:
        """The capped simplex where one is wanted; None: the problem's ball of mixtures."""
        return capped(problem)

    def _drawn(self, memory: Memory, problem: ServerProblem) -> SampledRound:
        return SampledRound.draw(problem, memory["lambda"], float(memory["round"]), 1)
