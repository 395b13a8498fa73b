"""What a plant opens, to whom, and what becomes of one that opens nothing or something else."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from nacl.public import SealedBox
from nacl.signing import VerifyKey

from services.auditing.auditor import AuditCase, audit
from services.auditing.questions import Question
from services.auditing.request import AuditRequest, opened_to, unsealed
from services.auditing.verdict import judged, verify_sum_evidence
from services.contracts.errors import InvalidInputError
from services.contracts.keys.signing import new_seed_file, signer
from services.contracts.wire.masking import MaskingError
from services.masking.commitments import signed
from tests.attacks.cohort import Cohort
from tests.services.auditing.conftest import LIAR

Make = Callable[..., Cohort]


def test_nobody_but_the_auditor_reads_what_is_opened(found: tuple[Cohort, AuditCase]) -> None:
    cohort, case = found
    other = cohort.files["auditor"].with_name("stranger.nk")
    new_seed_file(other)
    for sealed in case.sealed.values():
        assert unsealed(other, sealed.box) is None
        assert len(unsealed(cohort.files["auditor"], sealed.box) or ()) == 2
    words = unsealed(cohort.files["auditor"], case.sealed["plant-1"].box)
    assert words is not None and words[0].words not in case.model_dump_json().encode()
    with pytest.raises(InvalidInputError, match="for another auditor"):
        audit(case, other)


def test_who_opens_nothing_or_not_what_it_committed_to_is_convicted_of_that(found: tuple[Cohort, AuditCase]) -> None:
    cohort, case = found
    key = cohort.files["auditor"]
    without = {name: each for name, each in case.sealed.items() if name != "plant-2"}
    told = {each.site: each for each in audit(case.model_copy(update={"sealed": without}), key)}
    assert told["plant-2"].kind == "silent" and told[LIAR].kind == "contradiction" and len(told) == 2

    signature = signer(cohort.files["plant-2"])
    openings = list(unsealed(key, case.sealed["plant-2"].box) or ())
    for change, words in (
        ({"words": openings[1].words}, "words that plant-2 opened"),
        ({"blinding": bytes(32)}, "words that plant-2 opened"),
        ({"self_mask": openings[1].self_mask}, "self-mask that plant-2 opened"),
        ({"pairs": openings[1].pairs}, "pair masks that plant-2 opened"),
    ):
        false = [signed(openings[0].model_copy(update=change), signature), openings[1]]
        told = {each.site: each for each in audit(sealing(case, cohort, "plant-2", false), key)}
        assert told["plant-2"].kind == "misfit" and words in told["plant-2"].text
        files = judged(case, list(told.values()), cohort.auditor, signer(key))[1]
        assert words in verify_sum_evidence(files["plant-2"])[0]

    unsigned = [openings[0].model_copy(update={"words": openings[1].words}), openings[1]]
    told = {each.site: each for each in audit(sealing(case, cohort, "plant-2", unsigned), key)}
    assert told["plant-2"].kind == "unreadable"
    told = {each.site: each for each in audit(sealing(case, cohort, "plant-2", openings[:1]), key)}
    assert told["plant-2"].kind == "unreadable" and "sealed no opening of round" in told["plant-2"].text


def sealing(case: AuditCase, cohort: Cohort, site: str, openings: list[Any]) -> AuditCase:
    """The case with other openings of a plant, sealed and signed by it."""
    text = b"[" + b",".join(each.model_dump_json().encode() for each in openings) + b"]"
    raw = base64.b32decode(cohort.auditor)[1:-2]
    box = bytes(SealedBox(VerifyKey(raw).to_curve25519_public_key()).encrypt(text))
    bare = case.sealed[site].model_copy(update={"box": box})
    whole = bare.model_copy(update={"signature": signer(cohort.files[site])(bare.statement)})
    return case.model_copy(update={"sealed": {**case.sealed, site: whole}})


def test_a_plant_opens_only_what_it_was_asked_in_truth(found: tuple[Cohort, AuditCase]) -> None:
    cohort, case = found
    sign, committer = cohort.signers["plant-1"], cohort.committers["plant-1"]

    def opened(request: AuditRequest, auditor: str = cohort.auditor) -> Any:
        return opened_to(auditor, "plant-1", request, committer, sign)

    assert opened(case.request).site_id == "plant-1", "the same two rounds may be asked for again"
    with pytest.raises(MaskingError, match="another auditor than the plan"):
        opened(case.request.model_copy(update={"auditor": cohort.cohort.keys["plant-2"]}))
    one, other = case.request.rounds
    asked = other.asked
    moved = Question(asked.run_id, asked.cohort, asked.round, asked.spec, asked.shapes, asked.points + 1.0)
    with pytest.raises(MaskingError, match="of another question"):
        opened(case.request.model_copy(update={"rounds": (one, other.model_copy(update={"question": moved.frame()}))}))
    late = Question(asked.run_id, asked.cohort, 99, asked.spec, asked.shapes, asked.points)
    with pytest.raises(MaskingError, match="remembers no answer of round 99"):
        opened(case.request.model_copy(update={"rounds": (one, other.model_copy(update={"question": late.frame()}))}))


def test_without_a_contradiction_nothing_is_opened_and_a_second_pair_of_rounds_is_refused(cohort: Make) -> None:
    plants = cohort()
    for _ in range(4):
        assert plants.round() == []
    with pytest.raises(MaskingError, match="contradict each other nowhere"):
        opened_to(
            plants.auditor, "plant-1", plants.request(1, 3), plants.committers["plant-1"], plants.signers["plant-1"]
        )
    committer = plants.committers["plant-1"]
    assert len(committer.openings((1, 2))) == len(committer.openings((2, 1))) == 2
    with pytest.raises(MaskingError, match="opened rounds to an auditor in this run"):
        committer.openings((1, 3))


def test_without_leave_a_plant_opens_no_more_than_two_rounds(cohort: Make) -> None:
    plants = cohort()
    for _ in range(3):
        assert plants.round() == []
    request, committer, sign = plants.request(1, 2, 3), plants.committers["plant-1"], plants.signers["plant-1"]
    with pytest.raises(MaskingError, match="contradict each other nowhere"):
        opened_to(plants.auditor, "plant-1", request, committer, sign)
    with pytest.raises(MaskingError, match="opens 2 rounds to an auditor, 3 were asked"):
        committer.openings((1, 2, 3))
    assert opened_to(plants.auditor, "plant-1", request, committer, sign, every_round=True).site_id == "plant-1"


def test_a_plant_opens_no_round_in_whose_sum_it_is_not(cohort: Make) -> None:
    plants = cohort()
    for _ in range(2):
        assert plants.round() == []
    request = plants.request(1, 2)
    without = request.rounds[1].model_copy(update={"answered": ("plant-2", "plant-3", "plant-4")})
    request = request.model_copy(update={"rounds": (request.rounds[0], without)})
    committer, sign = plants.committers["plant-1"], plants.signers["plant-1"]
    sealed = opened_to(plants.auditor, "plant-1", request, committer, sign, every_round=True)
    assert [each.round for each in unsealed(plants.files["auditor"], sealed.box) or ()] == [1]
