"""One question to all sites: build the tasks, ask, admit the answers, account for every site.

A site whose answer to a round cannot be true is excluded: it signed it, and asking again would only get another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from models.basics import Arrays
from models.methods.catalogue import get_method
from services.contracts.history.run import Exchange, SiteAnswer
from services.contracts.machines.asset_type import AssetType
from services.contracts.plain_words import plain
from services.contracts.plans.plan import Plan
from services.contracts.problems.all_scores import method_for
from services.contracts.problems.coupling import CouplingTask
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.problems.tuning_task import TuningTask
from services.contracts.wire.codec import digest, encode
from services.contracts.wire.masking import MaskingTask
from services.contracts.wire.messages import ON_SUMS, Kind, SiteRefusal, SiteUpdate, Task
from services.coordinator.asking.admission import AdmissionError, Expected, admit, no_doubt
from services.coordinator.asking.plausibility import doubt
from services.coordinator.asking.ports import RawAnswer, SiteTransport

NEVER_TRUE = frozenset({"not_finite", "implausible"})
"""Codes of admission for a signed answer to the very task whose numbers no data give."""

FAILURE_TEXT = {
    "absent": "nobody answers for the site", "late": "no answer by the deadline, the plan's round_deadline_seconds",
}


@dataclass(frozen=True)
class Question:
    """What is asked of every site in one go; ``specs`` and ``arrays`` by site, ``shapes`` of a valid answer.

    ``masking`` says, by site, how an answer is to be masked; the answer then has no arrays, and ``most_bytes`` is the
    most that it may take.
    """

    kind: Kind
    run_id: str
    round: int
    plan: Plan
    asset_type: AssetType
    specs: Mapping[str, TrainingSpec]
    parameters: Mapping[str, float]
    arrays: Mapping[str, Arrays]
    shapes: Mapping[str, tuple[int, ...]]
    masking: Mapping[str, MaskingTask] = field(default_factory=dict)
    most_bytes: int = 0
    tuning: TuningTask | CouplingTask | None = None

    @cached_property
    def contract(self) -> str:
        """Fingerprint of the asset type, which every task names."""
        return self.asset_type.fingerprint


@dataclass(frozen=True)
class Poll:
    """The outcome: admitted updates and their frames by site, the account of every site, the slowest one's seconds."""

    updates: Mapping[str, SiteUpdate]
    answers: tuple[SiteAnswer, ...]
    slowest_seconds: float
    exchanges: Mapping[str, Exchange]

    @property
    def excluded(self) -> tuple[SiteAnswer, ...]:
        """Accounts of the sites whose answers cannot be true."""
        return tuple(answer for answer in self.answers if answer.status == "excluded")


async def poll(
    question: Question, keys: Mapping[str, str], transport: SiteTransport, deadline_seconds: float,
    live: Mapping[str, str] | None = None,
) -> Poll:
    """Ask the sites whose public keys are given.

    ``live`` are the keys that hold when the answers are there: one that was taken away since the question counts no
    more. None: they are those that are given.
    """
    frames = {site: encode(task_of(question, site)) for site in keys}
    raw = await transport.ask(frames, deadline_seconds)
    updates: dict[str, SiteUpdate] = {}
    answers: list[SiteAnswer] = []
    held = keys if live is None else live
    for site in keys:
        answer, update = account(question, site, held.get(site, ""), frames[site], raw[site])
        answers.append(answer)
        if update is not None:
            updates[site] = update
    exchanges = {site: (frames[site], frame) for site in updates if (frame := raw[site].frame) is not None}
    return Poll(updates, tuple(answers), max((answer.seconds for answer in raw.values()), default=0.0), exchanges)


def task_of(question: Question, site: str) -> Task:
    """What one site is asked."""
    return Task(
        kind=question.kind, site_id=site, run_id=question.run_id, round=question.round, method=question.plan.method,
        asset_type=question.plan.asset_type, contract=question.contract, spec=question.specs[site],
        parameters=dict(question.parameters), arrays=dict(question.arrays.get(site, {})), reveal=question.plan.reveal,
        masking=question.masking.get(site), tuning=question.tuning if question.kind == "tune" else None,
    )


def doubt_of(question: Question, site: str, said: Arrays) -> str:
    """Why an answer of a site to its question cannot be true; empty where nothing speaks against it."""
    asked, n_features = question.arrays.get(site, {}), len(question.asset_type.features)
    spec, method = question.specs[site], None
    if question.kind == "round":
        method = method_for(get_method(question.plan.method), spec, question.asset_type)
    return doubt(question.kind, spec, asked, said, n_features, method, question.parameters)


def account(
    question: Question, site: str, key: str, frame: bytes, raw: RawAnswer
) -> tuple[SiteAnswer, SiteUpdate | None]:
    """Account of what came back for a task's frame, and the update where it is admitted; ``key``: that holds now."""
    base = {"site_id": site, "bytes_out": len(frame), "seconds": raw.seconds}
    if raw.frame is None:
        return SiteAnswer(**base, status=raw.failure, code=raw.failure, reason=FAILURE_TEXT[raw.failure]), None
    base |= {"bytes_in": len(raw.frame), "payload_sha256": digest(raw.frame)}
    expected = Expected(
        question.kind, site, question.run_id, question.round, digest(frame), key, question.shapes,
        partial(doubt_of, question, site),
    )
    if site in question.masking:
        expected = replace(
            expected, shapes={}, masking=ON_SUMS[question.kind][1], masking_bytes=question.most_bytes, doubt=no_doubt
        )
    try:
        message = admit(raw.frame, expected)
    except AdmissionError as error:
        status = "excluded" if question.kind == "round" and error.code in NEVER_TRUE else "rejected"
        return SiteAnswer(**base, status=status, code=error.code, reason=plain(str(error))), None
    if isinstance(message, SiteRefusal):
        return SiteAnswer(**base, status="refused_by_site", code=message.code, reason=plain(message.reason)), None
    return SiteAnswer(**base, status="accepted"), message


def rejected(answers: Sequence[SiteAnswer], reasons: Mapping[str, str]) -> tuple[SiteAnswer, ...]:
    """Accounts in which the answers of some sites are rejected, for reasons by site."""
    return tuple(
        each.model_copy(update={"status": "rejected", "code": "implausible", "reason": reasons[each.site_id]})
        if each.site_id in reasons else each
        for each in answers
    )
