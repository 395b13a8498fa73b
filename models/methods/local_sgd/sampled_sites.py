"""What the methods have in common that draw sites by a mixture that they move: Lambda, the draws, the averages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from models.basics import Arrays, FloatArray
from models.fairness.ambiguity_set import RelativeSet
from models.methods.local_sgd.rule import LocalRule, Memory, check_clients, server_draws
from models.problem import ServerProblem
from models.site_ambiguity.ball import WHOLE_SIMPLEX
from models.site_ambiguity.projection import nearest_mixture


def reckoned(problem: ServerProblem) -> ServerProblem:
    """The problem with the whole simplex for Lambda where it states no ball of mixtures."""
    return problem if problem.mixture.radius > 0 else replace(problem, mixture=WHOLE_SIMPLEX)


@dataclass(frozen=True)
class SampledRound:
    """What is drawn for a round: how the sites' steps count (G,), whose losses count (G,), the step of the snapshot.

    ``stepping`` sums to 1; ``telling`` is G / m for the sites drawn and 0 for the others.
    """

    stepping: FloatArray
    telling: FloatArray
    snapshot_step: int

    @staticmethod
    def draw(problem: ServerProblem, mixture: FloatArray, number: float, steps: int) -> SampledRound:
        """Draw for round ``number``: the same draw whenever it is asked for."""
        n_sites, clients = len(problem.sites), int(problem.parameters["clients"])
        random = server_draws(problem.parameters["seed"], number)
        snapshot_step = int(random.integers(1, steps + 1))
        if clients == 0:
            return SampledRound(mixture, np.ones(n_sites), snapshot_step)
        drawn = random.choice(n_sites, size=clients, replace=True, p=mixture / mixture.sum())
        telling = np.zeros(n_sites)
        telling[random.choice(n_sites, size=clients, replace=False)] = n_sites / clients
        return SampledRound(np.bincount(drawn, minlength=n_sites) / clients, telling, snapshot_step)


class MixtureRule(LocalRule):
    """A rule that moves a mixture of the sites, ``lambda`` (G,) of its memory; ``shares`` is the same one."""

    def begin(self, problem: ServerProblem, point: FloatArray) -> Memory:
        """Start with the mixture of Lambda nearest to the site weights; refuses more clients than there are sites."""
        check_clients(int(problem.parameters["clients"]), len(problem.sites))
        mixture = self.nearest(problem, problem.weights)
        return {"point": point, "round": np.array(0.0), "lambda": mixture, "shares": mixture}

    def steps(self, problem: ServerProblem) -> int:
        """Tau: the local steps of a site in a round."""
        return 1

    def drawn(self, memory: Memory, problem: ServerProblem) -> SampledRound:
        """What is drawn for the round that is under way."""
        return SampledRound.draw(problem, memory["lambda"], float(memory["round"]), self.steps(problem))

    def ambiguity(self, problem: ServerProblem) -> RelativeSet | None:
        """Lambda as a capped simplex where ``worst_share`` wants one; None: the problem's ball of mixtures."""
        share = problem.parameters["worst_share"]
        return RelativeSet.of_shares(len(problem.sites), 0.0, share, 1.0) if share > 0 else None

    def nearest(self, problem: ServerProblem, point: FloatArray) -> FloatArray:
        """Projection of ``point`` (G,) on Lambda."""
        ambiguity = self.ambiguity(problem)
        if ambiguity is not None:
            return ambiguity.worst.nearest(point)
        return nearest_mixture(point, problem.weights, reckoned(problem).mixture)


def mean_answer(
    problem: ServerProblem, answers: Mapping[str, Arrays], name: str, shares: FloatArray, otherwise: FloatArray
) -> FloatArray:
    """Mean of an answer (D,) over the sites that are there, by their shares; ``otherwise`` where none is."""
    total, weight = np.zeros_like(otherwise), 0.0
    for g, site in enumerate(problem.sites):
        if shares[g] > 0 and site.site_id in answers:
            total = total + shares[g] * answers[site.site_id][name]
            weight += float(shares[g])
    return total / weight if weight > 0 else otherwise
