"""The auditor: opens what the plants of a cohort sealed for it, and says which of them lied, or that none did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import ConfigDict

from services.auditing.questions import falsehood
from services.auditing.request import AuditRequest, falsehood_of_sums, unsealed
from services.contracts.base import Contract, Slug
from services.contracts.errors import InvalidInputError
from services.contracts.keys.signing import public_key, verify
from services.contracts.wire.codec import digest
from services.contracts.wire.masking import Commitment, MaskingCohort, MaskingError, SealedOpenings
from services.masking.commitments import Opening, check_signature, disagreeing, opened_words
from services.masking.keys import Words
from services.verification.enclosures import Floats

Kind = Literal["contradiction", "misfit", "unreadable", "silent", "copied", "nobody", "sum"]
CONVICTING: frozenset[Kind] = frozenset({"contradiction", "misfit", "unreadable", "silent", "copied"})
"""Findings after which a plant is left out; ``nobody`` and ``sum`` are of no plant."""


Told = tuple[Floats, Floats]
"""What a plant tells at a point: the risks of all planes, and their slopes."""
_LEAST_ALIKE = 6  # points, zero weights among them: two tables of a few rows may agree on fewer
_LEAST_SLOPE = 1e-9  # largest entry: what no row gave is 0 but for the rounding of the words
_SAME = 1e-9  # relative to the largest number: a hundred times that rounding


class AuditCase(Contract):
    """What the coordinator hands to the auditor: the request, what each plant sent in the rounds, sealed openings.

    ``masked`` and ``commitments``: for each round of the request, by site.
    """

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    cohort: MaskingCohort
    request: AuditRequest
    masked: tuple[dict[Slug, bytes], ...]
    commitments: tuple[dict[Slug, Commitment], ...]
    sealed: dict[Slug, SealedOpenings]


@dataclass(frozen=True)
class Finding:
    """What the auditor found of a plant (``site`` empty: of none), and the openings that prove it where they do."""

    site: str
    kind: Kind
    text: str
    openings: tuple[Opening, ...] = ()


def audit(case: AuditCase, key_file: Path, every_round: bool = False) -> list[Finding]:
    """Findings of the plants that lied or did not open; else one of ``nobody``, or that the sums are not theirs.

    ``every_round``: the case is of all rounds of a run, whose sums need not contradict themselves.

    Raises
    ------
    InvalidInputError
        The case is for another auditor, its sums contradict each other nowhere, or what it gives as the plants'
        was not signed by them: the coordinator's fault, and no plant's.
    """
    _check(case, key_file, every_round)
    found: list[Finding] = []
    told: list[dict[str, Words]] = [{} for _ in case.request.rounds]
    for site in sorted({site for each in case.request.rounds for site in each.answered}):
        finding, words = _examined(case, site, key_file)
        for k, each in words.items():
            told[k][site] = each
        found += [finding] if finding else []
    return found or copied(case, told) or _of_none(case, told, every_round)


def _check(case: AuditCase, key_file: Path, every_round: bool) -> None:
    if case.request.auditor != public_key(key_file):
        raise InvalidInputError("the case is for another auditor: its key is not that of the key file")
    fingerprint, run_id = case.cohort.fingerprint, case.cohort.run_id
    if not len(case.request.rounds) == len(case.masked) == len(case.commitments):
        raise InvalidInputError("the case must give what the plants sent in each of its rounds")
    for at, masked, commitments in zip(case.request.rounds, case.masked, case.commitments, strict=True):
        asked = at.asked
        if (asked.run_id, asked.cohort, case.request.run_id) != (run_id, fingerprint, run_id):
            raise InvalidInputError("a question of the case is of another run or cohort")
        if not set(at.answered) == set(masked) == set(commitments) or not masked.keys() <= case.cohort.keys.keys():
            raise InvalidInputError(f"the case must give what each plant sent that round {asked.round} sums")
        for site, bound in commitments.items():
            try:
                check_signature(case.cohort, site, bound)
            except MaskingError as error:
                raise InvalidInputError(str(error)) from None
            if (bound.round, bound.cohort, bound.question) != (asked.round, fingerprint, asked.sha256):
                raise InvalidInputError(f"the commitment of {site} is not of the question of round {asked.round}")
    if len({at.asked.round for at in case.request.rounds}) != len(case.request.rounds):
        raise InvalidInputError("the case must be of two rounds, or of more, each once")
    if not every_round and (len(case.request.rounds) != 2 or not falsehood_of_sums(case.request.rounds)):
        raise InvalidInputError("the sums of the case contradict each other nowhere: there is nothing to audit")


def _examined(case: AuditCase, site: str, key_file: Path) -> tuple[Finding | None, dict[int, Words]]:
    """What is found of one plant, and its words by round (0 or 1) where they are known."""
    rounds = [k for k, each in enumerate(case.request.rounds) if site in each.answered]
    sealed = case.sealed.get(site)
    if sealed is None:
        return Finding(site, "silent", f"{site} opened nothing by the deadline"), {}
    if (sealed.site_id, sealed.run_id) != (site, case.cohort.run_id) or not verify(
        case.cohort.keys[site], sealed.statement, sealed.signature
    ):
        raise InvalidInputError(f"the box of {site} is not signed by it for this run")
    openings = {each.round: each for each in unsealed(key_file, sealed.box) or ()}
    words: dict[int, Words] = {}
    for k in rounds:
        number = case.request.rounds[k].asked.round
        opening = openings.get(number)
        try:
            if opening is None:
                raise MaskingError(f"{site} sealed no opening of round {number} for this auditor")
            check_signature(case.cohort, site, opening)
        except MaskingError as error:
            return Finding(site, "unreadable", str(error)), {}
        try:
            words[k] = opened_words(case.commitments[k][site], case.masked[k][site], opening)
            case.request.rounds[k].asked.answers(words[k])
        except (MaskingError, InvalidInputError) as error:
            return Finding(site, "misfit", str(error), (opening,)), {}
    why = falsehood([case.request.rounds[k].asked for k in rounds], [words[k] for k in rounds])
    if not why:
        return None, words
    pair = next(
        (k, j) for k in rounds for j in rounds
        if k <= j and falsehood([case.request.rounds[i].asked for i in (k, j)], [words[i] for i in (k, j)])
    )
    proof = tuple(openings[case.request.rounds[k].asked.round] for k in sorted(set(pair)))
    return Finding(site, "contradiction", f"{site} contradicts itself: {why}", proof), words


def copied(case: AuditCase, told: Sequence[Mapping[str, Words]]) -> list[Finding]:
    """Plants whose risks and slopes are in one proportion, as of one set of rows; lot says which is left out."""
    vectors: dict[str, list[Told]] = {}
    for at, words in zip(case.request.rounds, told, strict=True):
        question = at.asked
        for site in words:
            for answer in question.answers(words[site]):
                risks, slopes = answer.said["risk"].ravel(), answer.said.get("slope", np.zeros(0)).ravel()
                vectors.setdefault(site, []).append((risks, slopes))
    found: dict[str, Finding] = {}
    for one, other in combinations(sorted(vectors), 2):
        out, stays = sorted((one, other), key=lambda site: digest(f"{case.cohort.run_id} {site}".encode()))
        if {out, stays}.isdisjoint(found) and _proportional(vectors[one], vectors[other]):
            found[out] = Finding(out, "copied", (
                f"{out} and {stays} tell the same risks and slopes: one copies the other, or both hold the same rows; "
                "lot leaves this one out"
            ))
    return list(found.values())


def _proportional(one: Sequence[Told], other: Sequence[Told]) -> bool:
    """Whether two plants' vectors, each point's risks and slopes, are in the proportion of their shares throughout.

    Points of which no row gave a slope, in whichever plane, say nothing: where all rows are well classified, plants of
    one radius are alike.
    """
    telling = sum(np.abs(slopes).max(initial=0.0) > _LEAST_SLOPE for _, slopes in one)
    if len(other) != len(one) or telling < _LEAST_ALIKE:
        return False
    first, second = (np.concatenate([part for each in told for part in each]) for told in (one, other))
    scale = float(first @ second) / max(float(second @ second), 1e-300)
    return bool(np.abs(first - scale * second).max() <= _SAME * np.abs(first).max())


def _of_none(case: AuditCase, told: Sequence[Mapping[str, Words]], every_round: bool) -> list[Finding]:
    for at, words, commitments in zip(case.request.rounds, told, case.commitments, strict=True):
        if pairs := disagreeing(commitments):
            one, other = pairs[0]
            return [Finding("", "sum", f"{one} and {other} agreed on no mask in round {at.asked.round}")]
        if not np.array_equal(np.add.reduce(list(words.values())), at.words):
            return [Finding("", "sum", (
                f"the sum of round {at.asked.round} is not that of the plants' answers: the coordinator, or what an "
                "absent plant prepared, made it"
            ))]
    after = "" if every_round else ": ask for a run anew, which deals cohorts anew"
    return [Finding("", "nobody", f"no plant's own answers contradict each other{after}")]
