"""Where a run stands between two rounds, and what it leaves at its end."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from models.basics import Arrays, FloatArray
from models.cuts.carried_proof import CarriedProof
from models.cuts.contradiction import Contradiction
from models.methods.catalogue import get_method
from models.multiclass import Heads, OneVsRestServer
from models.problem import Certificate, ServerProblem, Status
from services.contracts.errors import BallastError
from services.contracts.run import Run, SiteAnswer
from services.coordinator.evaluation import risk_bound
from services.coordinator.poll import Poll


class ContradictingAnswersError(BallastError):
    """The sites' answers together prove a bound that they refute, and none of them by its own answers alone."""

    code = "contradicting_answers"


@dataclass(frozen=True)
class TrainedModel:
    """What training leaves: weights (K, P + 1), the last round's certificate, why it stopped, each site's risk.

    The intercept is the last weight, 0 where the model has none.

    ``absolute_gap``: distance of the bounds that was near enough whatever their ratio.
    ``worst_weights`` is each site's share in the worst mixture there, the mean over the heads. ``risk_bound`` bounds
    the worst-case risk of the weights by what the rounds saw: the greater of the upper bound and the worst mixture of
    the sites' risks, infinite for a method that minimises something else. ``convex_part``:
    bounds of the convex part, for a method whose objective is not convex. ``note``: what the method says of its result.
    ``proofs``: what proves the bounds of every head to others, where the method has that.
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


@dataclass(frozen=True)
class Training:
    """Where a run stands: what its method is, over which sites, and the method's state after round ``number``."""

    run: Run
    server: OneVsRestServer
    problem: ServerProblem
    state: Heads
    number: int = 0

    def status(self) -> Status:
        """Whether to go on."""
        return self.server.status(self.state, self.problem)

    def contradictions(self, answers: Mapping[str, Arrays]) -> dict[str, Contradiction]:
        """Sites whose answers cannot be true beside what they answered before."""
        return self.server.contradictions(self.state, self.problem, answers)

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

    def stepped(self, answers: Mapping[str, Arrays]) -> Training:
        """After the method's step; :class:`ContradictingAnswersError` where no bound holds or no solver finds one."""
        try:
            state = self.server.step(self.state, self.problem, answers)
            self.server.certificate(state)
        except (ArithmeticError, np.linalg.LinAlgError) as error:
            raise ContradictingAnswersError(
                f"no bound holds after round {self.number}, and no site's answers contradict each other: {error}"
            ) from None
        return replace(self, state=state)

    def trained(self, status: Status) -> TrainedModel:
        """What the rounds leave; a status of going on stands for the plan's round limit."""
        plan, server, state, problem = self.run.plan, self.server, self.state, self.problem
        certificate, risks = server.certificate(state), server.site_risks(state, problem)
        robust = get_method(plan.method).is_robust
        weights = server.weights(state)
        if not plan.spec.fit_intercept:
            weights = np.concatenate([weights, np.zeros((weights.shape[0], 1))], axis=1)
        return TrainedModel(
            weights=weights, status=Status.ROUND_LIMIT if status is Status.CONTINUE else status,
            certificate=certificate, absolute_gap=certificate.distance_allowed(plan.gap, plan.absolute_gap),
            rounds=self.number, site_risks=risks, worst_weights=server.mixture_weights(state, problem),
            risk_bound=risk_bound(certificate.upper, risks, problem) if robust else math.inf,
            convex_part=server.convex_part(state), note=server.note(state, problem),
            proofs=server.carried_proofs(state, problem),
        )
