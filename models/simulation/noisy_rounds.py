"""Training on noisy sums over cohorts, in one process: what a promise of (epsilon, delta) costs in the gap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from models.basics import FloatArray
from models.cohorts.dealing import Cohorts, cohort_problem, cohort_shares
from models.cohorts.discrete_gaussian import RandBelow
from models.cohorts.noise import METHOD, NoisePlan, NoiseTerms, noisy_words, row_share
from models.cohorts.noisy_bounds import bounded_answer, point_within, walled
from models.cuts.carried_proof import CarriedProof
from models.methods.catalogue import get_method
from models.problem import Certificate, SiteProblem
from models.simulation.federation import server_problem


@dataclass(frozen=True)
class NoisyTraining:
    """Best weights (D,), bounds that hold with the plan's confidence, rounds, and the epsilon that they spent.

    ``proof`` proves the bounds from the noisy sums, and so with that confidence.
    """

    weights: FloatArray
    certificate: Certificate
    rounds: int
    epsilon: float
    proof: CarriedProof | None


def train_with_noise(
    sites: Mapping[str, SiteProblem], cohorts: Cohorts, plan: NoisePlan, randbelow: RandBelow, *,
    weights: Mapping[str, float] | None = None, honest: int | None = None, gap: float = 1e-3,
) -> NoisyTraining:
    """Rounds until the bounds are near or the budget is spent; ``honest``: as many plants of each cohort, default all.

    Raises
    ------
    ProblemError
        Where the sites' problems do not allow the promise.
    """
    chosen = get_method(METHOD)
    plants = server_problem(sites, weights, chosen, {}, gap)
    shares, problem = cohort_shares(plants, cohorts), cohort_problem(plants, cohorts)
    counts = {name: site.labels.shape[0] for name, site in sites.items()}
    radii, loss = {name: site.spec.radius for name, site in sites.items()}, next(iter(sites.values())).spec.loss
    plan = replace(plan, cohorts=len(cohorts))
    of_cohort = {name: {plant: shares[plant] for plant in members} for name, members in cohorts.items()}
    terms = {
        name: NoiseTerms(row_share(own, counts), min(honest or len(own), len(own)), plan.rho)
        for name, own in of_cohort.items()
    }
    server, rounds = chosen.server, 0
    state = server.init(problem)
    state = replace(state, evidence=walled(state.evidence, problem, loss, plan.within))
    while rounds < plan.rounds and server.certificate(state).gap > gap:
        point = point_within(state.point, plan.within)
        state, answers, rounds = replace(state, point=point), {}, rounds + 1
        for name, own in of_cohort.items():
            words = [noisy_words(sites[plant], point, share, terms[name], randbelow) for plant, share in own.items()]
            answers[name] = bounded_answer(
                np.add.reduce(words), point, problem, loss, plan, terms[name], own, radii, complete=True
            )
        state = server.step(state, problem, answers)
    return NoisyTraining(server.weights(state), server.certificate(state), rounds, plan.spent(rounds),
                         server.carried_proof(state, problem))
