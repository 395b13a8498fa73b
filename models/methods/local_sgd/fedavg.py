r"""FedSGD, FedAvg, FedProx and q-FedAvg: average where the sites' local steps ended.

    w <- sum_{g in S} a_g w_g / sum_{g in S} a_g,      w_g after local steps from w of ``step_size / t^step_power``

- FedAvg (McMahan et al. 2017): ``epochs`` passes over the rows of each site, or ``local_steps`` steps;
- FedSGD: one step;
- FedProx (Li et al. 2020): the local loss has ``proximal/2 ||u - w||^2`` added.

S are ``clients`` sites drawn anew in each round t, without replacement (0: all). The problem is the plain one, without
a ball and with the sites' own weights; the bounds are those of the mean loss, without the ridge of the local steps.

q-FedAvg (Li, Sanjabi, Beirami, Smith 2020, Algorithm 2) lets sites with a larger loss count for more. Its objective is
``sum_g a_g f_g(w)^(q+1) / (q+1)``; with L = 1 / step_size and ``v_g = L (w - w_g)``,

    w <- w - sum_g a_g f_g^q v_g / sum_g a_g (q f_g^(q-1) ||v_g||^2 + L f_g^q).

q = 0 is FedAvg. The bounds are those of the plain mean loss ``sum_g a_g f_g``, which this method does not minimise for
q > 0: they say what fairness costs on average.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from models.basics import Arrays, FloatArray
from models.methods.local_sgd.rule import LocalRule, Memory, check_clients, server_draws, step_messages, step_size
from models.problem import ServerProblem

_LEAST_LOSS = 1e-12
"""A loss below it counts as this much: powers below 0 of a loss of 0 are infinite."""


@dataclass(frozen=True)
class AveragingRule(LocalRule):
    """Weighted average of the local points; one exchange a round."""

    def begin(self, problem: ServerProblem, point: FloatArray) -> Memory:
        """Nothing but the point to remember; refuses more clients than there are sites."""
        check_clients(int(problem.parameters["clients"]), len(problem.sites))
        return {"point": point, "round": np.array(0.0)}

    def messages(self, memory: Memory, problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """Sites that are not drawn get step size 0: they tell their loss and take no steps."""
        number, sizes = float(memory["round"]), np.zeros(len(problem.sites))
        sizes[drawn_sites(problem, number)] = step_size(problem, number)
        return step_messages(problem, memory["point"], number, sizes)

    def advance(self, memory: Memory, problem: ServerProblem, answers: Mapping[str, Arrays]) -> Memory:
        """Average over the drawn sites that answered."""
        number, sites = float(memory["round"]), problem.sites
        here = [sites[g] for g in drawn_sites(problem, number) if sites[g].site_id in answers]
        weights, point = np.array([site.weight for site in here]), memory["point"]
        if weights.sum() > 0:
            ended = np.array([answers[site.site_id]["local_point"] for site in here])
            point = weights @ ended / weights.sum()
        return {"point": point, "round": np.array(number + 1.0)}


def drawn_sites(problem: ServerProblem, finished: float) -> list[int]:
    """Indices of the sites that take steps in this round, in order."""
    count, wanted = len(problem.sites), int(problem.parameters["clients"])
    if wanted == 0:
        return list(range(count))
    draws = server_draws(problem.parameters["seed"], finished)
    return sorted(int(g) for g in draws.choice(count, wanted, replace=False))


@dataclass(frozen=True)
class FairAveragingRule(AveragingRule):
    """Asks as FedAvg does, and weighs the answers by the losses."""

    def advance(self, memory: Memory, problem: ServerProblem, answers: Mapping[str, Arrays]) -> Memory:
        """One step over the drawn sites that answered."""
        number, q, point = float(memory["round"]), problem.parameters["q"], memory["point"]
        inverse = 1.0 / step_size(problem, number)
        move, size = np.zeros_like(point), 0.0
        for g in drawn_sites(problem, number):
            site = problem.sites[g]
            answer = answers.get(site.site_id)
            if answer is None:
                continue
            loss = max(float(answer["risk"]), _LEAST_LOSS)
            change = inverse * (point - answer["local_point"])
            move = move + site.weight * loss**q * change
            size += site.weight * (q * loss ** (q - 1.0) * float(change @ change) + inverse * loss**q)
        return {"point": point - move / size if size > 0 else point, "round": np.array(number + 1.0)}

    def note(self, memories: Sequence[Memory], problem: ServerProblem) -> str:
        """What the bounds speak of, where that is not what the method minimises."""
        q = problem.parameters["q"]
        return f"q {q:.4g}: the bounds are those of the mean loss, which the method does not minimise" if q > 0 else ""
