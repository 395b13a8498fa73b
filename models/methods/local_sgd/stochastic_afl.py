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
from models.methods.local_sgd.rule import Memory, step_messages, step_size
from models.methods.local_sgd.sampled_sites import MixtureRule, mean_answer, nearest_weights, reported_losses
from models.problem import ServerProblem


@dataclass(frozen=True)
class StochasticAflRule(MixtureRule):
    """One exchange a round. Memory: ``point`` (D,), ``round`` (), ``lambda`` and ``shares`` (G,) both the mixture."""

    def messages(self, memory: Memory, problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """One step from the point for the sites drawn."""
        finished, drawn = float(memory["round"]), self.drawn(memory, problem)
        sizes = np.where(drawn.stepping > 0, step_size(problem, finished), 0.0)
        return step_messages(problem, memory["point"], finished, sizes)

    def advance(self, memory: Memory, problem: ServerProblem, answers: Mapping[str, Arrays]) -> Memory:
        """Descend in the weights, climb in the mixture."""
        drawn = self.drawn(memory, problem)
        losses = reported_losses(problem, answers, "risk", drawn.telling)
        mixture = nearest_weights(problem, memory["lambda"] + problem.parameters["mixture_step"] * losses)
        point = mean_answer(problem, answers, "local_point", drawn.stepping, memory["point"])
        return {"point": point, "round": memory["round"] + 1.0, "lambda": mixture, "shares": mixture}
