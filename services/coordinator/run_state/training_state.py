"""Where a run stands between two rounds, and what it leaves at its end."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np

from models.basics import Arrays, FloatArray
from models.cuts.carried_proof import CarriedProof
from models.cuts.contradiction import Contradiction, find_false_end
from models.cuts.evidence import EARLIER_RUN, Evidence
from models.cuts.held_open import held_open
from models.methods.catalogue import get_method
from models.methods.local_sgd.objectives.softmax import SoftmaxObjective
from models.methods.packed_change import PackedChange
from models.one_vs_rest import Heads, OneVsRestServer
from models.problem import REACH, Certificate, ServerProblem, Status
from models.worst_case.joint_risk import joint_planes, joint_weights
from services.contracts.history.run import RoundRecord, Run, SiteAnswer
from services.contracts.machines.asset_type import AssetType
from services.contracts.problems.all_scores import joint_loss, objective_of
from services.contracts.problems.coupling import Coupling
from services.contracts.problems.lift import lifted_size
from services.coordinator.asking.poll import Poll
from services.coordinator.run_state.evaluation import risk_bound
from services.coordinator.run_state.noisy_sums import last_status
from services.coordinator.run_state.run_errors import ContradictingAnswersError
from services.coordinator.run_state.terms import cohorts_of

LOG = logging.getLogger("ballast.coordinator")


@dataclass(frozen=True)
class TrainedModel:
    """What training leaves: weights (K, P + 1), the last round's certificate, why it stopped, each site's risk.

    The intercept is the last weight, 0 where the model has none. A softmax regression has a plane for each class, and
    so have all classes as one problem, where that of the first is 0; a network has all of its parameters in one row,
    (1, D).

    ``absolute_gap``: distance of the bounds that was near enough whatever their ratio.
    ``worst_weights`` is each site's share in the worst mixture there, the mean over the heads. ``risk_bound`` bounds
    the worst-case risk of the weights by what the rounds saw: the greater of the upper bound and the worst mixture of
    the sites' risks, infinite for a method that minimises something else. ``convex_part``:
    bounds of the convex part, for a method whose objective is not convex. ``note``: what the method says of its result.
    ``proofs``: what proves the bounds of every head to others, where the method has that. ``reused``: sites, or
    cohorts, whose cuts of an earlier run count in the bounds. ``coupling`` of the
    planes; certificate, risks and proofs are of the planes before it. ``held_open``: what sites, or cohorts, by
    themselves leave open of a gap that the run did not close.
    """

    weights: FloatArray
    status: Status
    certificate: Certificate
    absolute_gap: float
    rounds: int
    site_risks: Mapping[str, float]
    worst_weights: Mapping[str, float]
    risk_bound: float
    convex_part: Certificate | None = None
    note: str = ""
    proofs: tuple[CarriedProof, ...] = ()
    reused: tuple[str, ...] = ()
    coupling: Coupling | None = None
    held_open: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Training:
    """Where a run stands: what its method is, over which sites, and the method's state after round ``number``."""

    run: Run
    server: OneVsRestServer
    problem: ServerProblem
    state: Heads
    asset_type: AssetType
    number: int = 0

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of a valid answer."""
        return self.server.answer_shapes(self.problem.dimension, self.problem.n_swings, self.problem.parameters)

    def status(self) -> Status:
        """Whether to go on."""
        return self.server.status(self.state, self.problem)

    def rounds_of(self, cohort: str) -> list[int]:
        """Rounds whose sums of a cohort the bounds rest on."""
        place = list(cohorts_of(self.run)).index(cohort)
        return sorted({int(number) for each in self._evidence for number in each.cut_round[each.cut_site == place]})

    @property
    def _evidence(self) -> list[Evidence]:
        """Of the heads, of a method that keeps some."""
        return [head.evidence for head in self.state if isinstance(getattr(head, "evidence", None), Evidence)]

    @property
    def reused(self) -> tuple[str, ...]:
        """Sites, or cohorts, of which a cut of an earlier run is among those that the bounds rest on."""
        if self.run.start is None or self.run.start.after is None:
            return ()
        places = {int(site) for each in self._evidence for site in each.cut_site[each.cut_round == EARLIER_RUN]}
        return tuple(site.site_id for place, site in enumerate(self.problem.sites) if place in places)

    def without_earlier(self, sites: Collection[str]) -> Training:
        """Training that forgets what an earlier run told of some sites, or cohorts."""
        state = self.state
        for place, site in enumerate(self.problem.sites):
            if site.site_id in sites:
                LOG.warning("run %s: what %s told in an earlier run does not hold", self.run.run_id, site.site_id)
                state = self.server.forget_earlier(state, place)
        return replace(self, state=state)

    def held_to(self, answers: Mapping[str, Arrays]) -> Training:
        """Training without the cuts of an earlier run that the answers of this one refute.

        Nobody is convicted by them: their frames are gone, so nothing would prove which of the two is false.
        """
        at = self
        while at.reused:
            found = at.contradictions(answers)
            refuted = {site for site, each in found.items() if each.cut_round == EARLIER_RUN} & set(at.reused)
            if not refuted:
                break
            at = at.without_earlier(refuted)
        return at

    def contradictions(self, answers: Mapping[str, Arrays]) -> dict[str, Contradiction]:
        """Sites whose answers cannot be true beside what they answered before."""
        return self.server.contradictions(self.state, self.problem, answers)

    def false_sums(self, weights: FloatArray, risks: Mapping[str, FloatArray]) -> dict[str, Contradiction]:
        """Cohorts whose mean risks (K,) at weights (K, P + 1) lie below what their sums of this run prove there."""
        names = [site.site_id for site in self.problem.sites]
        points = self.of_heads(weights)
        if float(np.abs(points).max(initial=0.0)) > REACH:  # rounded sums are no cuts there
            return {}
        found = {
            name: each for name, told in risks.items()
            for evidence, point, risk in zip(self._evidence, points, told, strict=False)
            if (each := find_false_end(evidence, self.problem, names.index(name), point, float(risk), above=True))
        }
        return self.of_this_run(found)

    def of_this_run(self, found: Mapping[str, Contradiction]) -> dict[str, Contradiction]:
        """Contradictions with what was answered in this run: cuts that were taken over may be of other rows."""
        return {name: each for name, each in found.items() if not (self.reused and each.cut_round == EARLIER_RUN)}

    def convicted(self, outcome: Poll, found: Mapping[str, Contradiction]) -> list[SiteAnswer]:
        """Accounts of the sites whose answers cannot be true: alone, or by a contradiction that was ``found``."""
        contradicting = [
            answer.model_copy(
                update={"status": "excluded", "code": "contradiction", "reason": str(found[answer.site_id])}
            )
            for answer in outcome.answers
            if answer.site_id in found
        ]
        return [*outcome.excluded, *contradicting]

    def stepped(
        self, answers: Mapping[str, Arrays], due: Collection[str] = (), away: Collection[str] = ()
    ) -> Training:
        """After the method's step; :class:`ContradictingAnswersError` where no bound holds or no solver finds one.

        Where answers may be late: ``due`` are the sites whose answers are still to come, ``away`` is not waited for.
        """
        try:
            if self.server.answers_late:
                state = self.server.step_late(self.state, self.problem, answers, due, away)
            else:
                state = self.server.step(self.state, self.problem, answers)
            self.server.certificate(state)
        except (ArithmeticError, np.linalg.LinAlgError) as error:
            if self.reused:
                return self.without_earlier(self.reused).stepped(answers, due, away)
            raise ContradictingAnswersError(
                f"no bound holds after round {self.number}, and no site's answers contradict each other: {error}"
            ) from None
        return replace(self, state=state)

    def change_since(self, stored: Training | None) -> PackedChange:
        """What must be stored for this state where that of an earlier round is there; None: nothing is."""
        return self.server.pack_change(None if stored is None else stored.state, self.state)

    def state_of_cohorts(self, fewer: Training) -> Heads:
        """State of a run on sums that goes on as ``fewer``, without plants; their cohorts' evidence is dropped."""
        before, after = cohorts_of(self.run), cohorts_of(fewer.run)
        names = list(before)
        state = self.server.of_sites(self.state, fewer.problem, [names.index(name) for name in after])
        for place, name in enumerate(after):
            if after[name] != before[name]:
                state = fewer.server.anew(state, fewer.problem, place)
        return state

    def of_heads(self, weights: FloatArray) -> FloatArray:
        """Weights (K, D) as the heads have them, of a version's planes (K, P + 1): those of all classes are one row."""
        if joint_loss(self.run.plan.spec, self.asset_type) is not None:
            return joint_weights(weights, self.run.plan.spec.fit_intercept)[np.newaxis]
        return weights if self.problem.fit_intercept else weights[:, :-1]

    def record(
        self, began: datetime, seconds: float, slowest_seconds: float, answers: tuple[SiteAnswer, ...]
    ) -> RoundRecord:
        """Record of the round that led here; ``slowest_seconds`` of ``seconds`` were spent waiting for sites."""
        return RoundRecord.of_record(
            self.server.certificate(self.state), run_id=self.run.run_id, round=self.number, started_at=began,
            seconds=seconds, overhead_seconds=max(0.0, seconds - slowest_seconds), answers=answers,
        )

    def trained(self, status: Status) -> TrainedModel:
        """What the rounds leave; a status of going on stands for the plan's round limit."""
        plan, server, state, problem = self.run.plan, self.server, self.state, self.problem
        certificate, risks = server.certificate(state), server.site_risks(state, problem)
        mixture = server.mixture_weights(state, problem)
        if plan.reveal == "sums":  # the weights are fixed, and what is known by cohort is of no plant
            mixture = {site.site_id: site.weight for site in self.run.members}
        proofs = server.carried_proofs(state, problem)
        if proofs:  # what is told is what others can prove
            certificate = replace(certificate, lower=sum(proof.lower for proof in proofs))
        robust = get_method(plan.method).is_robust
        weights = server.weights(state)
        objective, joint = objective_of(plan.spec, self.asset_type), joint_loss(plan.spec, self.asset_type)
        if joint is not None:
            n_features = lifted_size(plan.spec.lift, len(self.asset_type.features))
            weights = joint_planes(weights[0], joint, n_features, plan.spec.fit_intercept)
        elif isinstance(objective, SoftmaxObjective):
            weights = objective.planes(weights[0], len(self.asset_type.features))
        elif not plan.spec.fit_intercept:
            weights = np.concatenate([weights, np.zeros((weights.shape[0], 1))], axis=1)
        return TrainedModel(
            weights=weights, status=last_status(plan, self.number) if status is Status.CONTINUE else status,
            certificate=certificate, absolute_gap=certificate.distance_allowed(plan.gap, plan.absolute_gap),
            rounds=self.number, site_risks={} if plan.reveal == "sums" else risks, worst_weights=mixture,
            risk_bound=risk_bound(certificate.upper, risks, problem) if robust else math.inf,
            convex_part=server.convex_part(state), note=server.note(state, problem),
            proofs=proofs, reused=self.reused,
            held_open=self._held_open(certificate) if robust and status in (Status.CONTINUE, Status.STALLED) else {},
        )

    def _held_open(self, certificate: Certificate) -> dict[str, float]:
        """What sites leave open of the gap; {} on noisy sums, whose planes are no sites' cuts."""
        if self.run.plan.noise is not None:
            return {}
        together = getattr(get_method(self.run.plan.method).server, "cut_at_point", False)
        apart = certificate.upper - certificate.lower
        return held_open(self._evidence, self.problem, apart, together=together)
