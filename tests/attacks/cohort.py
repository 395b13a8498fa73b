"""Four plants that are seen in sums alone: masks, commitments, and an audit where the sums contradict themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from models.basics import Arrays, FloatArray
from models.cohorts.dealing import cohort_problem, cohort_shares
from models.cohorts.fixed_point import Words, to_words
from models.cohorts.sums import CohortSum, cohort_answers
from models.methods.catalogue import check_parameters, get_method
from models.one_vs_rest import OneVsRestServer, answer_heads_remembering
from models.problem import ServerProblem, SiteProblem, Status
from models.simulation.federation import server_problem
from services.auditing.auditor import AuditCase, Finding, audit
from services.auditing.questions import Question
from services.auditing.request import AuditRequest, SummedRound, falsehood_of_sums, opened_to
from services.contracts.keys.signing import new_seed_file, public_key, signer
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.wire.masking import Commitment, MaskingCohort, MaskingError, SealedOpenings, default_threshold
from services.masking.commitments import check_commitment, disagreeing
from services.masking.committer import Committer
from services.masking.keys import MaskKeyPair
from services.masking.masks import words_to_bytes
from services.masking.member import Member
from services.masking.unmasking import deliveries, unmask_request, unmasked_sum

Lying = Callable[[int, dict[str, FloatArray], "Cohort"], dict[str, FloatArray]]
METHOD = "cohort-bundle"


@dataclass
class Summed:
    """What the coordinator keeps of a round."""

    question: Question
    masked: dict[str, bytes]
    commitments: dict[str, Commitment]
    total: Words


@dataclass
class Cohort:
    """Plants by name with their rows; ``lie`` changes what ``liar`` answers before it masks: round, answer, cohort.

    ``rounds`` holds what was summed, from round 1; ``before`` and ``now`` the honest answers of two rounds.
    """

    sites: Mapping[str, SiteProblem]
    folder: Path
    liar: str = ""
    lie: Lying = lambda number, said, plants: said
    gap: float = 1e-3
    questions: float = 1.0
    rounds: list[Summed] = field(default_factory=list)
    before: dict[str, dict[str, FloatArray]] = field(default_factory=dict)
    now: dict[str, dict[str, FloatArray]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Keys, and a run without rounds."""
        self.files = {name: self.folder / f"{name}.nk" for name in (*self.sites, "auditor")}
        for path in self.files.values():
            if not path.exists():
                new_seed_file(path)
        self.auditor = public_key(self.files["auditor"])
        keys = {name: public_key(self.files[name]) for name in self.sites}
        self.cohort = MaskingCohort(
            run_id="ab" * 16, name="cohort-1", keys=keys, threshold=default_threshold(len(keys))
        )
        self.signers = {name: signer(self.files[name]) for name in self.sites}
        pairs = {name: MaskKeyPair.new() for name in self.sites}
        mask_keys = {name: pairs[name].signed(self.cohort, name, self.signers[name]) for name in self.sites}
        self.members = {name: Member(self.cohort, name, pairs[name], mask_keys) for name in self.sites}
        self.committers = {
            name: Committer(self.cohort, name, self.members[name], self.signers[name]) for name in self.sites
        }
        method, dealt = get_method(METHOD), {"cohort-1": tuple(self.sites)}
        parameters = check_parameters(method, {"questions": self.questions})
        plants = server_problem(self.sites, None, method, parameters, self.gap)
        self.problem: ServerProblem = cohort_problem(plants, dealt)
        self.shares = cohort_shares(plants, dealt)
        self.server = OneVsRestServer(method.server, 1)
        self.state: Any = self.server.init(self.problem)
        self.memories: dict[str, Arrays] = dict.fromkeys(self.sites, {})

    def round(self) -> list[Finding]:
        """Ask, sum, and go on; or audit where the sums contradict themselves, with what the auditor found."""
        number = len(self.rounds) + 1
        message = self.server.messages(self.state, self.problem)["cohort-1"]
        shapes = self.server.answer_shapes(self.problem.dimension, self.problem.n_swings, self.problem.parameters)
        question = Question(
            self.cohort.run_id, self.cohort.fingerprint, number, self._spec(), shapes, message["points"]
        )
        summed = self._summed(number, question, {name: self._answer(number, name, message) for name in self.sites})
        self.rounds.append(summed)
        answers = cohort_answers(get_method(METHOD), {"cohort-1": CohortSum(summed.total)}, shapes)
        found = self.server.contradictions(self.state, self.problem, answers)
        if found:
            each = found["cohort-1"]
            numbers = sorted({each.risk_round, each.cut_round})
            # Within one round any other goes along: a plant opens two.
            case = self.case(*(numbers if len(numbers) == 2 else (1, numbers[0])))
            if falsehood_of_sums(case.request.rounds):
                return audit(case, self.files["auditor"])
        self.state = self.server.step(self.state, self.problem, answers)
        return []

    @property
    def done(self) -> bool:
        """Whether nothing is left to ask."""
        return self.server.status(self.state, self.problem) is not Status.CONTINUE

    def now_of(self, other: str, said: dict[str, FloatArray]) -> dict[str, FloatArray]:
        """What another plant answered to the question that is asked now."""
        return self.now.get(other, said)

    def final_audit(self) -> list[Finding]:
        """The audit of every round, before a model is registered."""
        case = self.case(*range(1, len(self.rounds) + 1), every_round=True)
        return audit(case, self.files["auditor"], every_round=True)

    def request(self, *numbers: int) -> AuditRequest:
        """The coordinator's request for rounds."""
        summed = tuple(
            SummedRound(
                question=self.rounds[k - 1].question.frame(), answered=tuple(sorted(self.rounds[k - 1].masked)),
                total=words_to_bytes(self.rounds[k - 1].total),
            )
            for k in numbers
        )
        return AuditRequest(run_id=self.cohort.run_id, auditor=self.auditor, rounds=summed)

    def case(self, *numbers: int, every_round: bool = False) -> AuditCase:
        """What the auditor gets on rounds; plants that refuse are missing from the boxes."""
        request, sealed = self.request(*numbers), dict[str, SealedOpenings]()
        for name in self.sites:
            try:
                sealed[name] = opened_to(
                    self.auditor, name, request, self.committers[name], self.signers[name], every_round
                )
            except MaskingError:
                continue
        kept = [self.rounds[k - 1] for k in numbers]
        return AuditCase(
            cohort=self.cohort, request=request, masked=tuple(each.masked for each in kept),
            commitments=tuple(each.commitments for each in kept), sealed=sealed,
        )

    def _answer(self, number: int, name: str, message: Arrays) -> Words:
        told, self.memories[name] = answer_heads_remembering(
            get_method(METHOD).site, [self.sites[name]], message, self.problem.parameters, self.memories[name]
        )
        honest = told.arrays
        if name in self.now:
            self.before[name] = self.now[name]
        self.now[name] = said = honest
        if name == self.liar:
            said = self.lie(number, honest, self)
        return to_words(said, self.shares[name], message["points"])

    def _summed(self, number: int, question: Question, words: Mapping[str, Words]) -> Summed:
        prepared = {name: each.prepare(number) for name, each in self.members.items()}
        asked = deliveries(self.cohort, number, prepared)
        sent = {name: self.committers[name].answer(asked[name], words[name], question.sha256) for name in asked}
        masked = {name: each for name, (each, _) in sent.items()}
        commitments = {name: each for name, (_, each) in sent.items()}
        for name, each in masked.items():
            check_commitment(self.cohort, question.sha256, prepared[name], prepared, each, commitments[name])
        assert not disagreeing(commitments)
        request = unmask_request(self.cohort, number, prepared, masked)
        revealed = {name: self.members[name].reveal(request) for name in request.answered}
        total = unmasked_sum(self.cohort, request, prepared, masked, revealed)
        return Summed(question, {name: each.words for name, each in masked.items()}, commitments, total)

    def _spec(self) -> TrainingSpec:
        return TrainingSpec(
            transport_norm=self.problem.transport_norm, fit_intercept=self.problem.fit_intercept
        )


def weights_of(cohort: Cohort) -> FloatArray:
    """Best weights (1, D) so far."""
    return np.asarray(cohort.server.weights(cohort.state))
