"""What an audit leaves: a verdict signed by the auditor, and against each liar an evidence file that anyone can check.

The verdict names plants and reasons and holds no answer; it is what the coordinator gets. An evidence file holds one or
two answers of one plant: the auditor keeps it, and shows it to whom it must convince.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

from pydantic import ConfigDict, ValidationError

from services.auditing.auditor import CONVICTING, AuditCase, Finding, Kind
from services.auditing.questions import Question, falsehood
from services.contracts.base import Contract, RunId, Slug
from services.contracts.errors import InvalidInputError
from services.contracts.keys.signing import verify
from services.contracts.wire.codec import digest
from services.contracts.wire.masking import Commitment, MaskingCohort, MaskingError, Signature
from services.masking.commitments import Opening, check_signature, opened_words
from services.masking.keys import Words
from services.verification.proof import NotProvenError

EVIDENCE: Literal["ballast.evidence-of-sums/1"] = "ballast.evidence-of-sums/1"
VERDICT: Literal["ballast.verdict/1"] = "ballast.verdict/1"


class _File(Contract):
    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    def text(self) -> bytes:
        """The file."""
        return (json.dumps(self.model_dump(mode="json"), indent=1, sort_keys=True) + "\n").encode()


FileT = TypeVar("FileT", bound=_File)


class Judged(Contract):
    """A finding in a verdict; ``evidence_sha256`` is that of the evidence file, empty where there is none."""

    site: str
    kind: Kind
    text: str
    evidence_sha256: str = ""


class Verdict(_File):
    """What an auditor says of a cohort and some of its rounds; ``signature`` is the auditor's, over all the rest."""

    format: Literal["ballast.verdict/1"] = VERDICT
    run_id: RunId
    cohort: str
    rounds: tuple[int, ...]
    findings: tuple[Judged, ...]
    auditor: str
    signature: Signature

    @property
    def statement(self) -> bytes:
        """What is signed."""
        return json.dumps(self.model_dump(mode="json", exclude={"signature"}), sort_keys=True).encode()

    @property
    def convicted(self) -> dict[str, str]:
        """Why each plant is left out, by site id."""
        return {each.site: each.text for each in self.findings if each.kind in CONVICTING}


class SumEvidence(_File):
    """What proves of one plant of a cohort that it lied: its signed commitments and openings of one or two rounds."""

    format: Literal["ballast.evidence-of-sums/1"] = EVIDENCE
    cohort: MaskingCohort
    site_id: Slug
    questions: tuple[bytes, ...]
    masked: tuple[bytes, ...]
    commitments: tuple[Commitment, ...]
    openings: tuple[Opening, ...]


def judged(
    case: AuditCase, findings: Sequence[Finding], auditor: str, sign: Callable[[bytes], bytes]
) -> tuple[Verdict, dict[str, bytes]]:
    """The verdict on findings, signed, and the evidence files by site."""
    files = {each.site: _evidence(case, each).text() for each in findings if each.openings}
    bare = Verdict(
        run_id=case.cohort.run_id, cohort=case.cohort.fingerprint, auditor=auditor,
        rounds=tuple(each.asked.round for each in case.request.rounds),
        findings=tuple(
            Judged(
                site=each.site, kind=each.kind, text=each.text,
                evidence_sha256=digest(files[each.site]) if each.site in files else "",
            )
            for each in findings
        ),
        signature=bytes(64),
    )
    return bare.model_copy(update={"signature": sign(bare.statement)}), files


def read_verdict(data: bytes, auditor: str, cohort: MaskingCohort) -> Verdict:
    """The verdict of the auditor that a plan names; :class:`NotProvenError` where it is another's, or of others."""
    found = _read(Verdict, data)
    if found.auditor != auditor or not verify(auditor, found.statement, found.signature):
        raise NotProvenError("the verdict is not signed by the auditor that the plan names")
    if (found.run_id, found.cohort) != (cohort.run_id, cohort.fingerprint):
        raise NotProvenError("the verdict is of another run or cohort")
    if strangers := found.convicted.keys() - cohort.keys.keys():
        raise NotProvenError(f"the verdict convicts {min(strangers)}, which is not in the cohort")
    return found


def verify_sum_evidence(data: bytes) -> list[str]:
    """What an evidence file of an audit proves, a line each; :class:`NotProvenError` where it proves nothing."""
    found = _read(SumEvidence, data)
    site, key = found.site_id, found.cohort.keys.get(found.site_id)
    if key is None or not found.openings:
        raise NotProvenError(f"{site} is not in the cohort of the file, or the file holds no opening")
    by_round = {each.round: each for each in found.openings}
    questions: list[Question] = []
    words: list[Words] = []
    misfit = ""
    for frame, masked, bound in zip(found.questions, found.masked, found.commitments, strict=False):
        question = Question.read(frame)
        try:
            check_signature(found.cohort, site, bound)
            if bound.round in by_round:
                check_signature(found.cohort, site, by_round[bound.round])
        except MaskingError as error:
            raise NotProvenError(str(error)) from None
        told = (bound.run_id, bound.cohort, bound.round, bound.question)
        if told != (found.cohort.run_id, found.cohort.fingerprint, question.round, question.sha256):
            raise NotProvenError(f"{site} did not commit itself to an answer to the question of round {question.round}")
        if digest(masked) != bound.masked:
            raise NotProvenError(f"the masked words of round {question.round} are not those that {site} sent")
        if bound.round not in by_round:
            continue
        try:
            words.append(opened_words(bound, masked, by_round[bound.round]))
            question.answers(words[-1])
            questions.append(question)
        except (MaskingError, InvalidInputError) as error:
            misfit = misfit or str(error)
    if {(each.run_id, each.cohort) for each in questions} - {(found.cohort.run_id, found.cohort.fingerprint)}:
        raise NotProvenError("a question is of another run or cohort")
    why = misfit or (falsehood(questions, words) if len({each.round for each in questions}) == len(questions) else "")
    if not why:
        raise NotProvenError(f"the answers of {site} contradict one another nowhere")
    return [
        f"proven: {site} lied in run {found.cohort.run_id}: {why}",
        f"checked: {len(found.openings)} openings and what they were committed to, all signed by {key}",
        "not checked: that this key is the plant's; compare it with its enrolment",
        "either an answer is false, or the plant's data changed during the run",
    ]


def is_sum_evidence(data: bytes) -> bool:
    """Whether a file says of itself that it is evidence of an audit."""
    return f'"{EVIDENCE}"'.encode() in data


def is_case(data: bytes) -> bool:
    """Whether a file holds a case for an auditor."""
    try:
        read_case(data)
    except InvalidInputError:
        return False
    return True


def run_of_verdict(data: bytes) -> str:
    """Run that a verdict says it is of; :class:`InvalidInputError` where the file holds none. Nothing is checked."""
    return _read(Verdict, data).run_id


def read_case(data: bytes) -> AuditCase:
    """The case in a file; :class:`InvalidInputError` where it is none."""
    try:
        return AuditCase.model_validate_json(data)
    except ValidationError:
        raise InvalidInputError("not a case for an audit: it must be the JSON that a coordinator writes") from None


def _evidence(case: AuditCase, finding: Finding) -> SumEvidence:
    site, numbers = finding.site, {each.round for each in finding.openings}
    kept = [k for k, each in enumerate(case.request.rounds) if each.asked.round in numbers]
    return SumEvidence(
        cohort=case.cohort, site_id=site, openings=finding.openings,
        questions=tuple(case.request.rounds[k].question for k in kept),
        masked=tuple(case.masked[k][site] for k in kept),
        commitments=tuple(case.commitments[k][site] for k in kept),
    )


def _read(kind: type[FileT], data: bytes) -> FileT:
    try:
        return kind.model_validate_json(data)
    except ValidationError:
        name = kind.__name__.lower()
        raise InvalidInputError(f"not a file of {name}: it must be the JSON that an audit writes") from None
