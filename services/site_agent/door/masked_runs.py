"""What a plant holds of its runs on sums, in memory alone: keys and secrets of its masks, and its own past cuts.

In a run with an auditor also its last answers, so that it can open two of them.
A restart loses all of it, and costs a new agreement on keys and some rounds: the plant then answers from the centre
that its cohort shares (``models.methods.bundle.cohort_site``).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from pydantic import ValidationError

from models.basics import Arrays
from models.cohorts.fixed_point import asked_points, to_words
from services.auditing.questions import Question
from services.auditing.request import AuditRequest, opened_to
from services.contracts.errors import InvalidInputError
from services.contracts.problems.coupling import CouplingTask
from services.contracts.wire.masking import (
    Delivery,
    MaskedWords,
    MaskingAnswer,
    MaskingCohort,
    MaskingError,
    MaskingTask,
    MaskKey,
    MaskKeys,
    OpenRounds,
    Preparation,
    SealedOpenings,
    Unmasked,
    Unmasking,
)
from services.contracts.wire.messages import Task
from services.masking.committer import MOST_AUDITS, Committer
from services.masking.keys import MaskKeyPair, Words
from services.masking.member import Member
from services.masking.scores import score_words
from services.site_agent.answers.local_coupling import coupling_words
from services.site_agent.answers.local_tuning import tuning_words
from services.site_agent.rules.policy import Refusal, SitePolicy

_RUNS_KEPT = 4  # as many as a plant takes part in at once


@dataclass
class _MaskedRun:
    """One run: the agreement on keys that holds, and the plant's memory of its own answers.

    ``committed_to``: the method and the problem of the answers that an auditor may see; empty: none was bound so far.
    """

    cohort: MaskingCohort
    pair: MaskKeyPair
    key: MaskKey
    member: Member | None = None
    committer: Committer | None = None
    memory: Arrays = field(default_factory=dict)
    committed_to: str = ""


class MaskedRuns:
    """The plant's half of masking (``services.masking``), run by run. Not thread-safe.

    ``sign`` signs with the site's nkey, whose public half is ``public_key``.
    """

    def __init__(self, site_id: str, public_key: str, sign: Callable[[bytes], bytes], policy: SitePolicy) -> None:
        self._site_id, self._public_key, self._sign, self._policy = site_id, public_key, sign, policy
        self._runs: OrderedDict[str, _MaskedRun] = OrderedDict()
        # Of all runs since the agent started: one that is let go of for others, and comes back, opened all the same.
        self._opened = set[str]()

    def answer(self, task: MaskingTask) -> MaskingAnswer:
        """Answer to a task that asks for keys, shares or the taking off of masks: nothing made from data.

        Raises
        ------
        Refusal
            The policy does not allow the cohort, the keys are not held any more, or what is asked would show an answer.
        """
        try:
            match task:
                case MaskingCohort():
                    return self._agree(task)
                case MaskKeys():
                    return self._prepare(task)
                case Unmasking():
                    return self._unmask(task)
                case OpenRounds():
                    return self._open(task)
                case Delivery():
                    raise Refusal("bad_task", "masks are made over an answer")
        except MaskingError as error:
            raise Refusal("masks_refused", str(error)) from None

    def mask(self, delivery: Delivery, words: Words, question: Question | None = None) -> MaskedWords:
        """Words (L,) under the masks of a round; :class:`Refusal` as for :meth:`answer`.

        With the ``question`` that they answer, a commitment to them goes along where the cohort has an auditor.
        """
        try:
            member, committer = self._member(delivery.run_id), self._run(delivery.run_id).committer
            if committer is None or question is None:
                return member.mask(delivery, words)
            masked, bound = committer.answer(delivery, words, question.sha256)
            return masked.model_copy(update={"commitment": bound})
        except MaskingError as error:
            raise Refusal("masks_refused", str(error)) from None

    def words(self, task: Task, answer: Arrays) -> Words:
        """An answer as what the run's cohort sums, by the plant's share.

        Raises
        ------
        ProblemError
            A number does not fit a sum.
        """
        share = self.cohort(task.run_id).share(self._site_id)
        if task.kind == "evaluate":
            return score_words(answer, share)
        if task.kind == "tune":
            tuned = coupling_words if isinstance(task.tuning, CouplingTask) else tuning_words
            return tuned(task, answer, share)
        return to_words(answer, share, asked_points(task.arrays))

    def summed(self, delivery: Delivery) -> MaskingCohort:
        """The cohort that a round's answer goes into the sum of; :class:`Refusal` where too few of it take part."""
        cohort = self.cohort(delivery.run_id)
        self._policy.check_summed(cohort, self._site_id, {self._site_id, *delivery.sealed})
        return cohort

    def cohort(self, run_id: str) -> MaskingCohort:
        """The cohort that was agreed on last in a run; :class:`Refusal` where none was."""
        return self._run(run_id).cohort

    def question(self, task: Task, answer: Arrays) -> Question:
        """What a round's task asks of the cohort, as the coordinator has to hash it too.

        Where an auditor may see the answers they are all of one risk, for a plant that told two in truth would
        contradict itself: :class:`Refusal` for another method or problem than that of the answers before.
        """
        run = self._run(task.run_id)
        if run.committer is not None:
            asked = task.model_copy(update={"masking": None, "arrays": {}, "round": 0}).model_dump_json()
            if run.committed_to not in ("", asked):
                raise Refusal("question_refused", "of another method or problem than answers that an auditor may see")
            run.committed_to = asked
        shapes = {name: each.shape for name, each in answer.items()}
        return Question(task.run_id, run.cohort.fingerprint, task.round, task.spec, shapes, asked_points(task.arrays))

    def memory(self, run_id: str) -> Arrays:
        """What the plant remembers of its own answers in a run; {} at its start and after a restart."""
        return self._run(run_id).memory

    def remember(self, run_id: str, memory: Arrays) -> None:
        """Keep the memory after an answer."""
        self._run(run_id).memory = memory

    def _agree(self, cohort: MaskingCohort) -> MaskKey:
        """A new key for each agreement; the same one when the same is asked for again."""
        self._policy.check_cohort(cohort, self._site_id, self._public_key)
        known = self._runs.get(cohort.run_id)
        if known is not None and known.cohort == cohort:
            return known.key
        pair = MaskKeyPair.new()
        made = _MaskedRun(cohort, pair, pair.signed(cohort, self._site_id, self._sign))
        if known is not None and known.cohort.members == cohort.members:
            made.memory = known.memory
        self._runs[cohort.run_id] = made
        self._runs.move_to_end(cohort.run_id)
        if len(self._runs) > _RUNS_KEPT:
            self._runs.popitem(last=False)
        return made.key

    def _prepare(self, task: MaskKeys) -> Preparation:
        run = self._run(task.run_id)
        if task.keys.get(self._site_id) != run.key:
            raise Refusal("masks_missing", "the keys are of another agreement than this site's latest")
        if run.member is None:
            run.member = Member(run.cohort, self._site_id, run.pair, task.keys)
            if run.cohort.auditor:
                most = 0 if task.run_id in self._opened else MOST_AUDITS
                run.committer = Committer(run.cohort, self._site_id, run.member, self._sign, most)
        return run.member.prepare(task.round)

    def _unmask(self, task: Unmasking) -> Unmasked:
        member = self._member(task.run_id)
        self._policy.check_summed(self.cohort(task.run_id), self._site_id, {*task.request.answered})
        revealed = member.reveal(task.request)
        return Unmasked(
            run_id=task.run_id, revealed=revealed,
            preparation=None if task.next_round is None else member.prepare(task.next_round),
        )

    def _open(self, task: OpenRounds) -> SealedOpenings:
        """Two answers, or all where the cohort says so, sealed to its auditor as all its plants know it."""
        run = self._run(task.run_id)
        if run.committer is None:
            raise Refusal("masks_refused", "the cohort has no auditor: nothing is opened")
        try:
            request = AuditRequest.model_validate_json(task.request)
            sealed = opened_to(
                run.cohort.auditor, self._site_id, request, run.committer, self._sign,
                every_round=run.cohort.audit_every_round,
            )
        except (ValidationError, InvalidInputError) as error:
            raise Refusal("bad_task", str(error)) from None
        self._opened.add(task.run_id)
        return sealed

    def _member(self, run_id: str) -> Member:
        member = self._run(run_id).member
        if member is None:
            raise Refusal("masks_missing", "no keys of the other plants have come yet")
        return member

    def _run(self, run_id: str) -> _MaskedRun:
        if run_id not in self._runs:
            raise Refusal("masks_missing", "no keys were agreed on since the agent started")
        return self._runs[run_id]
