r"""DRFA: the worst mixture of the sites sought by a walk of its own, with sampled sites (Deng et al. 2020).

    min_w max_{lambda in Lambda} sum_g lambda_g f_g(w)              (DRFLM eq. 2, Algorithm 1 without mixup)

A round of the paper is two of ours. First exchange: m sites, drawn by lambda with replacement, take tau local steps
from w; their mean is the next w, and the mean of where they stood after t' steps, t' drawn from 1..tau, is the
snapshot. Second exchange: m sites, drawn evenly without replacement, tell their losses at the snapshot, and

    lambda <- nearest in Lambda to lambda + mixture_step tau v,     v_g = (G / m) f_g for the sites drawn, 0 elsewhere.

Lambda is the whole simplex, or the problem's ball of mixtures where it states one, or with ``worst_share`` a the capped
simplex ``lambda_g <= 1 / (a G)``. ``clients`` 0 draws no sites: all step, weighted by lambda, and all losses count.

The losses are those over all rows of a site, not of a batch. All sites answer in every exchange, those that were not
drawn without a step: that is what the certificate, of the min-max problem itself, is made of.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from models.basics import Arrays, FloatArray
from models.fairness.ambiguity_set import RelativeSet
from models.methods.local_sgd.rule import LocalRule, Memory, check_clients, draw_number, message
from models.methods.local_sgd.sampled_sites import (
    SampledRound,
    capped,
    mean_answer,
    nearest_weights,
    reckoned,
    reported_losses,
)
from models.methods.local_sgd.server import LocalServer, LocalState
from models.problem import ServerProblem


@dataclass(frozen=True)
class DrfaRule(LocalRule):
    """Two exchanges a round; ``telling`` is 1 in the second. ``told`` names the answer that lambda climbs on.

    Memory: ``point`` (D,), ``round`` () rounds finished, ``lambda`` and ``shares`` (G,) both the mixture, ``snapshot``
    (D,), ``telling`` ().
    """

    told: str = "risk"

    def begin(self, problem: ServerProblem, point: FloatArray) -> Memory:
        """Start from a point, with the site weights for lambda."""
        mixture = first_mixture(problem)
        zero = np.array(0.0)
        return {
            "point": point, "round": zero, "lambda": mixture, "shares": mixture, "snapshot": point, "telling": zero,
        }

    def asked(self, memory: Memory) -> FloatArray:
        """The snapshot in the second exchange."""
        return memory["snapshot" if memory["telling"] else "point"]

    def messages(self, memory: Memory, problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """Step from the point, or tell the loss at the snapshot."""
        numbers, finished, telling = problem.parameters, float(memory["round"]), float(memory["telling"])
        drawn = self._drawn(memory, problem)
        size = 0.0 if telling else numbers["step_size"] / (finished + 1.0) ** numbers["step_power"]
        return {
            site.site_id: message(
                self.asked(memory),
                step_size=size if drawn.stepping[g] > 0 else 0.0,
                draw=draw_number(numbers["seed"], 2.0 * finished + telling, g),
                snapshot_step=drawn.snapshot_step,
            )
            for g, site in enumerate(problem.sites)
        }

    def advance(self, memory: Memory, problem: ServerProblem, answers: Mapping[str, Arrays]) -> Memory:
        """Average the steps of the drawn sites that are there, or move lambda by the losses told."""
        drawn = self._drawn(memory, problem)
        if not memory["telling"]:
            point = mean_answer(problem, answers, "local_point", drawn.stepping, memory["point"])
            snapshot = mean_answer(problem, answers, "snapshot", drawn.stepping, memory["point"])
            return {**memory, "point": point, "snapshot": snapshot, "telling": np.array(1.0)}
        losses = reported_losses(problem, answers, self.told, drawn.telling)
        rate = problem.parameters["mixture_step"] * steps_of(problem.parameters)
        mixture = nearest_weights(problem, memory["lambda"] + rate * losses)
        moved = {"lambda": mixture, "shares": mixture, "round": memory["round"] + 1.0, "telling": np.array(0.0)}
        return {**memory, **moved}

    def ambiguity(self, problem: ServerProblem) -> RelativeSet | None:
        """The capped simplex where one is wanted; None: the problem's ball of mixtures."""
        return capped(problem)

    def note(self, memories: Sequence[Memory], problem: ServerProblem) -> str:
        """What the bounds speak of, where lambda climbs on other losses than those."""
        return "" if self.told == "risk" else "the bounds are those of the problem without mixup"

    def _drawn(self, memory: Memory, problem: ServerProblem) -> SampledRound:
        return SampledRound.draw(problem, memory["lambda"], float(memory["round"]), steps_of(problem.parameters))


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

def first_mixture(problem: ServerProblem) -> FloatArray:
    """The site weights, or the mixture of Lambda that is nearest to them; refuses more clients than there are sites."""
    check_clients(int(problem.parameters["clients"]), len(problem.sites))
    return nearest_weights(problem, problem.weights)


def steps_of(parameters: Mapping[str, float]) -> int:
    """Tau: the local steps of a site; where epochs are counted, those of a site whose rows part evenly into batches."""
    counted = int(parameters["local_steps"])
    return counted or int(parameters["epochs"]) * math.ceil(round(1.0 / parameters["batch"], 9))
