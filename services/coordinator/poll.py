"""One question to all sites: build the tasks, ask, admit the answers, account for every site."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from models.problem import Arrays
from services.contracts.codec import digest, encode
from services.contracts.messages import Kind, SiteRefusal, SiteUpdate, Task, TrainingSpec
from services.contracts.plan import Plan
from services.contracts.run import SiteAnswer
from services.coordinator.admission import AdmissionError, admit, expect
from services.coordinator.ports import RawAnswer, SiteTransport

FAILURE_TEXT = {"absent": "nobody answers for the site", "late": "no answer by the deadline"}


@dataclass(frozen=True)
class Question:
    """What is asked of every site in one go; ``specs`` and ``arrays`` by site, ``shapes`` of a valid answer."""

    kind: Kind
    run_id: str
    round: int
    plan: Plan
    contract: str
    specs: Mapping[str, TrainingSpec]
    parameters: Mapping[str, float]
    arrays: Mapping[str, Arrays]
    shapes: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Poll:
    """The outcome: admitted updates by site, the account of every site, and the slowest site's seconds."""

    updates: Mapping[str, SiteUpdate]
    answers: tuple[SiteAnswer, ...]
    slowest_seconds: float


async def poll(question: Question, keys: Mapping[str, str], transport: SiteTransport, deadline_seconds: float) -> Poll:
    """Ask the sites whose public keys are given."""
    frames = {site: encode(_task(question, site)) for site in keys}
    raw = await transport.ask(frames, deadline_seconds)
    updates: dict[str, SiteUpdate] = {}
    answers: list[SiteAnswer] = []
    for site, key in keys.items():
        answer, update = _account(question, site, key, frames[site], raw[site])
        answers.append(answer)
        if update is not None:
            updates[site] = update
    return Poll(updates, tuple(answers), max((answer.seconds for answer in raw.values()), default=0.0))


def _task(question: Question, site: str) -> Task:
    return Task(
        kind=question.kind, site_id=site, run_id=question.run_id, round=question.round, method=question.plan.method,
        asset_type=question.plan.asset_type, contract=question.contract, spec=question.specs[site],
        parameters=dict(question.parameters), arrays=dict(question.arrays.get(site, {})),
    )


def _account(
    question: Question, site: str, key: str, frame: bytes, raw: RawAnswer
) -> tuple[SiteAnswer, SiteUpdate | None]:
    base = {"site_id": site, "bytes_out": len(frame), "seconds": raw.seconds}
    if raw.frame is None:
        return SiteAnswer(**base, status=raw.failure, code=raw.failure, reason=FAILURE_TEXT[raw.failure]), None
    base |= {"bytes_in": len(raw.frame), "payload_sha256": digest(raw.frame)}
    expected = expect(
        frame, kind=question.kind, site_id=site, run_id=question.run_id, round_number=question.round, public_key=key,
        shapes=question.shapes,
    )
    try:
        message = admit(raw.frame, expected)
    except AdmissionError as error:
        return SiteAnswer(**base, status="rejected", code=error.code, reason=str(error)), None
    if isinstance(message, SiteRefusal):
        return SiteAnswer(**base, status="refused_by_site", code=message.code, reason=message.reason), None
    return SiteAnswer(**base, status="accepted"), message
