r"""FedSGD, FedAvg and FedProx: average where the sites' local steps ended.

    w <- sum_{g in S} a_g w_g / sum_{g in S} a_g,      w_g after local steps from w of ``step_size / t^step_power``

- FedAvg (McMahan et al. 2017): ``epochs`` passes over the rows of each site, or ``local_steps`` steps;
- FedSGD: one step;
- FedProx (Li et al. 2020): the local loss has ``proximal/2 ||u - w||^2`` added.

S are ``clients`` sites drawn anew in each round t, without replacement (0: all). The problem is the plain one, without
a ball and with the sites' own weights; the bounds are those of the mean loss, without the ridge of the local steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.basics import Arrays, FloatArray
from models.methods.local_sgd.rule import LocalRule, Memory, check_clients, server_draws, step_messages, step_size
from models.problem import ServerProblem


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
