r"""DRFA and Stochastic AFL: the worst mixture of the sites sought by a walk of its own, with sampled sites.

    min_w max_{lambda in Lambda} sum_g lambda_g f_g(w)              (DRFLM eq. 2, Algorithm 1 without mixup)

A round of DRFA (Deng et al. 2020) is two of ours. First exchange: m sites, drawn by lambda with replacement, take tau
local steps from w; their mean is the next w, and the mean of where they stood after t' steps, t' drawn from 1..tau, is
the snapshot. Second exchange: m sites, drawn evenly without replacement, tell their losses at the snapshot, and

    lambda <- nearest in Lambda to lambda + mixture_step tau v,     v_g = (G / m) f_g for the sites drawn, 0 elsewhere.

Lambda is the whole simplex, or the problem's ball of mixtures where it states one, or with ``worst_share`` a the capped
simplex ``lambda_g <= 1 / (a G)``. ``clients`` 0 draws no sites: all step, weighted by lambda, and all losses count.

The losses are those over all rows of a site, not of a batch. All sites answer in every exchange, those that were not
drawn without a step: that is what the certificate, of the min-max problem itself, is made of.

Stochastic AFL (Mohri et al. 2019) takes one stochastic step of the weights and one of the mixture in each round,

    w <- w - step_size sum_g lambda_g grad f_g(w; batch),   lambda <- nearest in Lambda to lambda + mixture_step f(w),

both at the same w, in one exchange. With ``clients`` m > 0 the step is the mean of m sites drawn by lambda with
replacement, and the losses are those of m sites drawn evenly, times G / m, as in DRFA.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from models.basics import Arrays, FloatArray
from models.methods.answer_arrays import stacked
from models.methods.local_sgd.rule import Memory, step_messages, step_size
from models.methods.local_sgd.sampled_sites import MixtureRule, mean_answer, reckoned
from models.methods.local_sgd.server import LocalServer, LocalState
from models.problem import ServerProblem


@dataclass(frozen=True)
class DrfaRule(MixtureRule):
    """Two exchanges a round; ``telling`` is 1 in the second. ``told`` names the answer that lambda climbs on.

    Memory: ``point`` (D,), ``round`` () rounds finished, ``lambda`` and ``shares`` (G,) both the mixture, ``snapshot``
    (D,), ``telling`` ().
    """

    told: str = "risk"

    def begin(self, problem: ServerProblem, point: FloatArray) -> Memory:
        """As every rule of a mixture, in the first exchange."""
        return {**super().begin(problem, point), "snapshot": point, "telling": np.array(0.0)}

    def asked(self, memory: Memory) -> FloatArray:
        """The snapshot in the second exchange."""
        return memory["snapshot" if memory["telling"] else "point"]

    def messages(self, memory: Memory, problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """Step from the point, or tell the loss at the snapshot."""
        finished, telling, drawn = float(memory["round"]), float(memory["telling"]), self.drawn(memory, problem)
        sizes = np.where(drawn.stepping > 0, 0.0 if telling else step_size(problem, finished), 0.0)
        number = 2.0 * finished + telling
        return step_messages(problem, self.asked(memory), number, sizes, snapshot_step=drawn.snapshot_step)

    def advance(self, memory: Memory, problem: ServerProblem, answers: Mapping[str, Arrays]) -> Memory:
        """Average the steps of the drawn sites that are there, or move lambda by the losses told."""
        drawn = self.drawn(memory, problem)
        if not memory["telling"]:
            point = mean_answer(problem, answers, "local_point", drawn.stepping, memory["point"])
            snapshot = mean_answer(problem, answers, "snapshot", drawn.stepping, memory["point"])
            return {**memory, "point": point, "snapshot": snapshot, "telling": np.array(1.0)}
        losses = drawn.telling * stacked(problem, answers, self.told)
        rate = problem.parameters["mixture_step"] * self.steps(problem)
        mixture = self.nearest(problem, memory["lambda"] + rate * losses)
        moved = {"lambda": mixture, "shares": mixture, "round": memory["round"] + 1.0, "telling": np.array(0.0)}
        return {**memory, **moved}

    def steps(self, problem: ServerProblem) -> int:
        """Those asked for, or where epochs are counted those of a site whose rows part evenly into batches."""
        numbers = problem.parameters
        counted = int(numbers["local_steps"])
        return counted or int(numbers["epochs"]) * math.ceil(round(1.0 / numbers["batch"], 9))

    def note(self, memories: Sequence[Memory], problem: ServerProblem) -> str:
        """What the bounds speak of, where lambda climbs on other losses than those."""
        return "" if self.told == "risk" else "the bounds are those of the problem without mixup"


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
        losses = drawn.telling * stacked(problem, answers, "risk")
        mixture = self.nearest(problem, memory["lambda"] + problem.parameters["mixture_step"] * losses)
        point = mean_answer(problem, answers, "local_point", drawn.stepping, memory["point"])
        return {"point": point, "round": memory["round"] + 1.0, "lambda": mixture, "shares": mixture}


@dataclass(frozen=True)
class WorstMixtureServer(LocalServer):
    """Server half of the min-max methods, certified for the worst mixture."""

    def step(self, state: LocalState, problem: ServerProblem, answers: Mapping[str, Arrays]) -> LocalState:
        """As the rule goes on; the bounds are those of the worst mixture."""
        return super().step(state, reckoned(problem), answers)

    def mixture_weights(self, state: LocalState, problem: ServerProblem) -> dict[str, float]:
        """Worst mixture of the sites at the best weights."""
        ambiguity, known = self.rule.ambiguity(problem), self.site_risks(state, problem)
        if ambiguity is None or any(math.isnan(risk) for risk in known.values()):
            return super().mixture_weights(state, reckoned(problem))
        return dict(zip(known, ambiguity.member(np.array(list(known.values()))).tolist(), strict=True))
