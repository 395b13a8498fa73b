"""What a run with an auditor keeps of its sums, in memory, and what it asks where they contradict themselves.

As many rounds are kept as the plants keep (``services.masking.committer``), of the agreement on keys that holds: an
earlier one's masks nobody can open together with these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from models.basics import FloatArray
from models.cohorts.fixed_point import Words, asked_points
from services.auditing.auditor import AuditCase
from services.auditing.questions import Question as SumQuestion
from services.auditing.request import AuditRequest, SummedRound, falsehood_of_sums
from services.contracts.wire.masking import (
    Commitment,
    MaskedWords,
    MaskingCohort,
    MaskingError,
    Preparation,
    SealedOpenings,
)
from services.coordinator.asking.poll import Question
from services.masking.commitments import check_commitment, disagreeing
from services.masking.committer import ROUNDS_KEPT
from services.masking.masks import words_to_bytes


@dataclass(frozen=True)
class SummedWords:
    """A round of a cohort: what was asked, what the plants of the sum sent, and the sum (L,)."""

    cohort: MaskingCohort
    question: SumQuestion
    masked: Mapping[str, MaskedWords]
    total: Words

    @property
    def commitments(self) -> dict[str, Commitment]:
        """By site, of all that sent one."""
        return {site: each.commitment for site, each in self.masked.items() if each.commitment is not None}

    @property
    def summed(self) -> SummedRound:
        """The round as a request has it."""
        return SummedRound(
            question=self.question.frame(), answered=tuple(sorted(self.masked)), total=words_to_bytes(self.total)
        )


@dataclass
class SumRecords:
    """The last rounds of each cohort, by name."""

    kept: dict[str, dict[int, SummedWords]] = field(default_factory=dict)

    def keep(self, name: str, found: SummedWords) -> None:
        """Keep a round; those of another agreement on keys, and the oldest, go."""
        before = self.kept.get(name, {})
        same = {number: each for number, each in before.items() if each.cohort == found.cohort}
        same[found.question.round] = found
        self.kept[name] = {number: same[number] for number in sorted(same)[-ROUNDS_KEPT:]}

    def request(self, name: str, auditor: str, numbers: Sequence[int]) -> AuditRequest | None:
        """Request for the one or two rounds of a contradiction; None where they are not kept.

        A contradiction within one round takes any other along.
        """
        kept, wanted = self.kept.get(name, {}), sorted(set(numbers))
        others = [number for number in kept if number not in wanted]
        pair = (wanted + others[:1])[:2]
        if len(pair) < 2 or not kept.keys() >= set(pair):
            return None
        rounds = tuple(kept[number].summed for number in sorted(pair))
        return AuditRequest(run_id=kept[pair[0]].cohort.run_id, auditor=auditor, rounds=rounds)

    def every_round(self, name: str, auditor: str, numbers: Sequence[int]) -> AuditRequest | None:
        """Request for all these rounds; None where one of them is not kept."""
        kept = self.kept.get(name, {})
        if not numbers or not kept.keys() >= set(numbers):
            return None
        rounds = tuple(kept[number].summed for number in numbers)
        return AuditRequest(run_id=kept[numbers[-1]].cohort.run_id, auditor=auditor, rounds=rounds)

    def case(self, name: str, request: AuditRequest, sealed: Mapping[str, SealedOpenings]) -> AuditCase:
        """What the auditor gets; who is missing in ``sealed`` opened nothing."""
        rounds = [self.kept[name][each.asked.round] for each in request.rounds]
        return AuditCase(
            cohort=rounds[0].cohort, request=request,
            masked=tuple({site: sent.words for site, sent in each.masked.items()} for each in rounds),
            commitments=tuple(each.commitments for each in rounds), sealed=dict(sealed),
        )


def is_false(request: AuditRequest) -> bool:
    """Whether the sums contradict each other by more than their rounding: else no plant would open them."""
    return bool(falsehood_of_sums(request.rounds))


def sum_question(question: Question, cohort: MaskingCohort) -> SumQuestion:
    """What a cohort is asked, as its plants hash it too."""
    site = cohort.members[0]
    points: FloatArray = asked_points(question.arrays[site])
    return SumQuestion(
        question.run_id, cohort.fingerprint, question.round, question.specs[site], question.shapes, points
    )


def unbound(
    cohort: MaskingCohort, question: SumQuestion, prepared: Mapping[str, Preparation],
    masked: Mapping[str, MaskedWords],
) -> dict[str, str]:
    """Why the words of some plants may not be summed, by site: nothing binds them, or a pair agreed on no mask."""
    found: dict[str, str] = {}
    bound: dict[str, Commitment] = {}
    for site, each in masked.items():
        if each.commitment is None:
            found[site] = "it did not commit itself to its answer, and the plan has an auditor"
            continue
        try:
            check_commitment(cohort, question.sha256, prepared[site], prepared, each, each.commitment)
            bound[site] = each.commitment
        except MaskingError as error:
            found[site] = str(error)
    for one, other in disagreeing(bound):
        found |= {one: f"it and {other} agreed on no mask", other: f"it and {one} agreed on no mask"}
    return found
