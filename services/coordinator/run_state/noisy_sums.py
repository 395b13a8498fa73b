"""Noise on the sums of a run: the terms of its cohorts, the method's half over noisy sums, and what a version promises.

All of it follows from the plan, the run's id and the scalars that the plants joined with: a run that resumes, or goes
on without a plant, has the same budget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from models.basics import Arrays, FloatArray, ProblemError, stack_arrays
from models.cohorts.dealing import Cohorts
from models.cohorts.noise import NoisePlan, row_share, word_count
from models.cohorts.noisy_bounds import NeverNoiseError, bounded_answer, point_within, walled
from models.cohorts.sums import CohortSum
from models.cuts.contradiction import Contradiction
from models.losses.base import Loss
from models.methods.bundle.asynchronous import AsynchronousServer
from models.methods.bundle.level import BundleServer, BundleState
from models.methods.catalogue import get_method
from models.methods.protocol import ServerHalf
from models.problem import ServerProblem, Status
from services.contracts.errors import InvalidInputError
from services.contracts.history.run import Run
from services.contracts.machines.asset_type import AssetType
from services.contracts.plans.plan import Plan
from services.contracts.problems.all_scores import method_for
from services.contracts.problems.noise import CohortNoise, NoisePromise
from services.contracts.wire.masking import threshold_of
from services.coordinator.run_state.run_errors import ContradictingAnswersError
from services.coordinator.run_state.terms import cohorts_of


@dataclass(frozen=True)
class NoisyServer(BundleServer):
    """The level bundle over noisy sums: walls before the first round, points within the norm of the bounds."""

    within: float
    loss: Loss

    def init(self, problem: ServerProblem) -> BundleState:
        """Walls alone are known."""
        state = super().init(problem)
        return replace(state, evidence=walled(state.evidence, problem, self.loss, self.within))

    def asked(self, state: BundleState) -> FloatArray:
        """The point, drawn back into the norm."""
        return point_within(state.point, self.within)

    def messages(self, state: BundleState, problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """The same point for every cohort."""
        return super().messages(replace(state, point=self.asked(state)), problem)

    def step(self, state: BundleState, problem: ServerProblem, answers: Mapping[str, Arrays]) -> BundleState:
        """As the bundle, from the point that was asked."""
        return super().step(replace(state, point=self.asked(state)), problem, answers)

    def status(self, state: BundleState, problem: ServerProblem) -> Status:
        """Never stalled: the same point asked again has other noise."""
        status = super().status(state, problem)
        return Status.CONTINUE if status is Status.STALLED else status

    def contradictions(
        self, state: BundleState, problem: ServerProblem, answers: Mapping[str, Arrays]
    ) -> dict[str, Contradiction]:
        """None: a noisy plane may lie above the risk."""
        return {}

    def of_sites(self, state: BundleState, problem: ServerProblem, kept: Sequence[int]) -> BundleState:
        """As the bundle; from the start where the walls stood with a cohort that is gone."""
        fewer = super().of_sites(state, problem, kept)
        return fewer if (fewer.evidence.cut_round == 0).any() else self.init(problem)


def server_half(plan: Plan, asset_type: AssetType) -> ServerHalf[Any]:
    """Server half of the plan's method: over noisy sums, or for late answers where it says how long it waits."""
    if plan.waiting is not None:
        return AsynchronousServer(prox_cuts=plan.method == "level-bundle")
    if plan.noise is None:
        half: ServerHalf[Any] = method_for(get_method(plan.method), plan.spec, asset_type).server
        return half
    return NoisyServer(prox_cuts=False, within=plan.noise.within, loss=plan.spec.loss.loss)


def most_rounds(plan: Plan) -> int:
    """The plan's limit, or the rounds that its noise is planned for where those are fewer."""
    return plan.max_rounds if plan.noise is None else min(plan.max_rounds, plan.noise.rounds)


def last_status(plan: Plan, rounds: int) -> Status:
    """Why a run that might go on ends after so many rounds."""
    return Status.BUDGET_SPENT if plan.noise is not None and rounds >= plan.noise.rounds else Status.ROUND_LIMIT


def noise_plan(run: Run, asset_type: AssetType) -> NoisePlan | None:
    """The budget of a run, over the cohorts that it began with; None without noise."""
    if run.plan.noise is None:
        return None
    begun = cohorts_of(run.model_copy(update={"excluded": ()}))
    return run.plan.noise.plan(asset_type.heads(run.plan.spec.loss.task), len(begun))


def promise(run: Run, asset_type: AssetType, rounds: int) -> NoisePromise | None:
    """What a version of the run promises after so many rounds; None without noise."""
    plan = noise_plan(run, asset_type)
    return None if plan is None or run.plan.noise is None else NoisePromise.of(run.plan.noise, plan, rounds)


@dataclass(frozen=True)
class NoisyCohorts:
    """What the coordinator needs to ask for noisy sums and to bound by them; ``noise`` by cohort, shares by plant."""

    plan: NoisePlan
    noise: Mapping[str, CohortNoise]
    problem: ServerProblem
    loss: Loss
    shares: Mapping[str, float]

    @classmethod
    def of(
        cls, run: Run, plan: NoisePlan | None, problem: ServerProblem, cohorts: Cohorts, shares: Mapping[str, float]
    ) -> NoisyCohorts | None:
        """Those of a run with noise, whose plants' problem is ``problem``; None without noise."""
        spec = run.plan.noise
        if spec is None or plan is None:
            return None
        counts = {site.site_id: site.n_samples for site in run.members}
        noise = {
            name: CohortNoise(
                row_share=row_share({site: shares[site] for site in members}, counts), rho=plan.rho,
                honest=spec.honest(threshold_of(len(members), run.plan.sum_threshold)),
            )
            for name, members in cohorts.items()
        }
        return cls(plan, noise, problem, run.plan.spec.loss.loss, shares)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the words of an answer, a row a head."""
        return {"words": (self.plan.heads, word_count(self.problem.dimension))}

    def answers(self, sums: Mapping[str, CohortSum], points: Mapping[str, FloatArray]) -> dict[str, Arrays]:
        """Answers by cohort for the server half, from sums over those that are in them, at points (K, D).

        Raises
        ------
        InvalidInputError
            The noise does not fit into a sum: weights too large, or too few rows for the budget.
        ContradictingAnswersError
            A sum is of no risks, whatever the noise.
        """
        radii = {site.site_id: site.radius for site in self.problem.sites}
        found: dict[str, Arrays] = {}
        for name, each in sums.items():
            present = {site: self.shares[site] for site in each.present}
            words = each.words.reshape(self.plan.heads, -1)
            try:
                found[name] = stack_arrays([
                    bounded_answer(
                        words[head], point, self.problem, self.loss, self.plan, self.noise[name].terms, present, radii,
                        each.complete,
                    )
                    for head, point in enumerate(np.asarray(points[name]))
                ])
            except NeverNoiseError as error:
                raise ContradictingAnswersError(
                    f"some plant of {', '.join(sorted(each.present))} lied: their sums say {error}"
                ) from None
            except ProblemError as error:
                raise InvalidInputError(f"cohort {name}: {error}", code="noise") from None
        return found
