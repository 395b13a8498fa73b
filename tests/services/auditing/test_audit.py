"""A cohort whose sums contradict themselves opens two rounds to the auditor, who names the liar and nobody else."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nacl.public import SealedBox
from nacl.signing import VerifyKey

from models.problem import RobustSpec, SiteProblem
from services.auditing.auditor import AuditCase, audit
from services.auditing.questions import Question
from services.auditing.request import AuditRequest, falsehood_of_sums, opened_to, unsealed
from services.auditing.verdict import judged, read_verdict, verify_sum_evidence
from services.contracts.errors import InvalidInputError
from services.contracts.masking import MaskingError
from services.contracts.signing import new_seed_file, public_key, signer
from services.masking.commitments import signed
from services.masking.masks import words_from_bytes, words_to_bytes
from services.verification.proof import NotProvenError
from tests.attacks.cohort import Cohort
from tests.services.auditing.conftest import LIAR, halved, problems

Make = Callable[..., Cohort]


def caught(make: Make) -> Cohort:
    """A cohort at the round in which the liar was found."""
    cohort = make(liar=LIAR, lie=halved)
    while not cohort.done:
        if found := cohort.round():
            assert [(each.site, each.kind) for each in found] == [(LIAR, "contradiction")]
            return cohort
    raise AssertionError("the lie was not found")


def last_case(cohort: Cohort) -> AuditCase:
    return cohort.case(1, len(cohort.rounds))


def false_case(cohort: Cohort) -> AuditCase:
    """The case of two rounds that contradict each other."""
    for one in range(1, len(cohort.rounds)):
        request = cohort.request(one, len(cohort.rounds))
        if falsehood_of_sums(request.rounds):
            return cohort.case(one, len(cohort.rounds))
    raise AssertionError("no two rounds contradict each other")


def of(case: AuditCase, **changes: Any) -> AuditCase:
    return case.model_copy(update=changes)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Cohort, AuditCase]:
    """A cohort whose plants have opened the two rounds in which a liar shows; a case is changed by copies of it."""
    folder = tmp_path_factory.mktemp("audit")
    told = caught(lambda **changes: Cohort(problems(), folder, **changes))
    return told, false_case(told)


def test_honest_plants_reach_the_end_without_an_audit(cohort: Make) -> None:
    plants = cohort(questions=3.0)
    while not plants.done:
        assert plants.round() == []
    assert plants.server.certificate(plants.state).gap <= 1e-3


def test_the_verdict_is_the_auditors_and_names_the_liar(found: tuple[Cohort, AuditCase]) -> None:
    cohort, case = found
    key = cohort.files["auditor"]
    findings = audit(case, key)
    verdict, files = judged(case, findings, public_key(key), signer(key))
    assert set(verdict.convicted) == set(files) == {LIAR}
    assert read_verdict(verdict.text(), cohort.auditor, cohort.cohort) == verdict
    assert b"words" not in verdict.text(), "no answer is in what the coordinator gets"
    lines = verify_sum_evidence(files[LIAR])
    assert f"{LIAR} lied" in lines[0] and "lies below" in lines[0] and cohort.cohort.keys[LIAR] in lines[1]
    other = new_seed_file(key.with_name("other.nk"))
    with pytest.raises(NotProvenError, match="not signed by the auditor"):
        read_verdict(verdict.text(), other, cohort.cohort)
    forged = json.loads(verdict.text())
    forged["findings"][0]["site"] = "plant-1"
    with pytest.raises(NotProvenError, match="not signed by the auditor"):
        read_verdict(json.dumps(forged).encode(), cohort.auditor, cohort.cohort)
    elsewhere = cohort.cohort.model_copy(update={"name": "cohort-2"})
    with pytest.raises(NotProvenError, match="another run or cohort"):
        read_verdict(verdict.text(), cohort.auditor, elsewhere)


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


def test_evidence_that_was_changed_proves_nothing(found: tuple[Cohort, AuditCase]) -> None:
    cohort, case = found
    key = cohort.files["auditor"]
    document = json.loads(judged(case, audit(case, key), cohort.auditor, signer(key))[1][LIAR])
    honest = unsealed(key, case.sealed["plant-1"].box) or ()
    his = [json.loads(each.model_dump_json()) for each in honest]
    commitments = [json.loads(case.commitments[k]["plant-1"].model_dump_json()) for k in (0, 1)]
    changes: list[tuple[dict[str, Any], str]] = [
        ({"openings": his}, "stands for plant-4"),
        ({"commitments": commitments}, "stands for plant-4"),
        ({"openings": [{**document["openings"][0], "words": his[0]["words"]}]}, "not signed by the key"),
        ({"openings": document["openings"][:1]}, "contradict one another nowhere"),
        ({"openings": []}, "holds no opening"),
        ({"questions": document["questions"][::-1]}, "did not commit itself"),
        ({"masked": document["masked"][::-1]}, "not those that plant-4 sent"),
        ({"site_id": "plant-1"}, "stands for plant-1"),
        ({"questions": [], "masked": [], "commitments": []}, "contradict one another nowhere"),
    ]
    for change, words in changes:
        with pytest.raises(NotProvenError, match=words):
            verify_sum_evidence(json.dumps({**document, **change}).encode())
    for text in (b"", b"[]", b'{"format": "x"}'):
        with pytest.raises(InvalidInputError, match="not a file"):
            verify_sum_evidence(text)


def test_an_honest_plants_openings_are_no_evidence(found: tuple[Cohort, AuditCase]) -> None:
    cohort, case = found
    key = cohort.files["auditor"]
    document = json.loads(judged(case, audit(case, key), cohort.auditor, signer(key))[1][LIAR])
    openings = unsealed(key, case.sealed["plant-1"].box) or ()
    theirs = {
        "site_id": "plant-1", "openings": [json.loads(each.model_dump_json()) for each in openings],
        "commitments": [json.loads(case.commitments[k]["plant-1"].model_dump_json()) for k in (0, 1)],
    }
    masked = json.loads(case.model_dump_json())["masked"]
    with pytest.raises(NotProvenError, match="contradict one another nowhere"):
        verify_sum_evidence(
            json.dumps({**document, **theirs, "masked": [masked[k]["plant-1"] for k in (0, 1)]}).encode()
        )


def test_who_opens_nothing_or_not_what_it_committed_to_is_convicted_of_that(found: tuple[Cohort, AuditCase]) -> None:
    cohort, case = found
    key = cohort.files["auditor"]
    without = {name: each for name, each in case.sealed.items() if name != "plant-2"}
    told = {each.site: each for each in audit(of(case, sealed=without), key)}
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
    return of(case, sealed={**case.sealed, site: whole})


def test_a_plant_that_masks_other_words_than_it_commits_to_is_convicted(cohort: Make) -> None:
    """Its opening is honest, and would pass were the masks not opened with it."""
    plants = cohort(liar=LIAR, lie=lambda number, said, _: said)
    committer = plants.committers[LIAR]
    honest_answer = committer.answer

    def answer(delivery: Any, words: Any, question: str) -> Any:
        masked, bound = honest_answer(delivery, words, question)
        kept, bound, opening = committer._kept[delivery.round]
        shifted = words_from_bytes(kept.words).copy()
        shifted[-2:] -= np.uint64(2**49)
        other = kept.model_copy(update={"words": words_to_bytes(shifted)})
        false = signed(
            bound.model_copy(update={"masked": hashlib.sha256(other.words).hexdigest()}), plants.signers[LIAR]
        )
        committer._kept[delivery.round] = other, false, opening
        return (other, false) if delivery.round > 1 else (masked, bound)

    committer.answer = answer  # type: ignore[method-assign]
    found: list[Any] = []
    while not found and not plants.done and len(plants.rounds) < 20:
        found = plants.round()
    assert [(each.site, each.kind) for each in found] == [(LIAR, "misfit")]
    assert "masked other words" in found[0].text


def test_a_coordinator_that_makes_up_a_sum_is_found_out(cohort: Make) -> None:
    plants = cohort()
    for _ in range(4):
        assert plants.round() == []
    true = plants.rounds[3].total
    plants.rounds[3].total = words_from_bytes(_risk_set(plants, 4, 1))
    assert (plants.rounds[3].total != true).sum() == 1
    told = audit(plants.case(1, 4), plants.files["auditor"])
    assert [(each.site, each.kind) for each in told] == [("", "sum")]
    assert "the sum of round 4 is not that of the plants' answers" in told[0].text


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


def test_a_case_that_the_plants_did_not_sign_convicts_nobody(found: tuple[Cohort, AuditCase]) -> None:
    cohort, case = found
    key = cohort.files["auditor"]
    first = {**case.commitments[0], "plant-1": case.commitments[0]["plant-2"]}
    swapped = {**case.sealed, "plant-1": case.sealed["plant-2"]}
    fewer = {name: each for name, each in case.masked[0].items() if name != "plant-1"}
    one, _ = case.request.rounds
    for change, words in (
        ({"commitments": (first, case.commitments[1])}, "stands for plant-1"),
        ({"commitments": case.commitments[::-1]}, "not of the question"),
        ({"sealed": swapped}, "box of plant-1 is not signed"),
        ({"masked": (fewer, case.masked[1])}, "what each plant sent"),
        ({"request": case.request.model_copy(update={"rounds": (one, one)})}, "not of the question"),
        ({"masked": case.masked[:1]}, "in each of its rounds"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            audit(of(case, **change), key)


def test_the_risk_of_more_plants_is_held_to_the_cuts_of_fewer_and_not_the_other_way(cohort: Make) -> None:
    plants = cohort()
    for _ in range(3):
        assert plants.round() == []
    one, other = plants.request(1, 3).rounds
    part = [words for name, words in _words(plants, 3).items() if name in ("plant-1", "plant-2", "plant-3")]
    fewer = other.model_copy(update={
        "answered": ("plant-1", "plant-2", "plant-3"), "total": words_to_bytes(np.add.reduce(part)),
    })
    assert not falsehood_of_sums((one, fewer)) and not falsehood_of_sums((fewer, one))
    low = one.model_copy(update={"total": words_to_bytes(_lowered(plants, plants.rounds[0].total))})
    assert not falsehood_of_sums((low,) * 2), "alone it is the risk of other rows"
    assert "lies below" in falsehood_of_sums((low, fewer)) and "lies below" in falsehood_of_sums((fewer, low))
    first = [words for name, words in _words(plants, 1).items() if name != "plant-4"]
    fewer_low = low.model_copy(update={
        "answered": ("plant-1", "plant-2", "plant-3"), "total": words_to_bytes(_lowered(plants, np.add.reduce(first))),
    })
    assert not falsehood_of_sums((fewer_low, other)) and not falsehood_of_sums((other, fewer_low))


def _lowered(plants: Cohort, words: Any) -> Any:
    """Words of round 1 with a risk of almost nothing, and cuts far below."""
    shapes, found = plants.rounds[0].question.shapes, words.copy()
    start = 0
    for name in sorted(shapes):
        size = int(np.prod(shapes[name]))
        if name == "risk":
            found[start] = 1
        elif name in ("cut_height", "minorant_offset"):
            found[start : start + size] -= np.uint64(2**45)
        start += size
    return found


def _words(plants: Cohort, number: int) -> dict[str, Any]:
    return {
        name: words_from_bytes(each._kept[number][2].words) for name, each in plants.committers.items()
    }


def _risk_set(plants: Cohort, number: int, value: int) -> bytes:
    """The sum of a round with a risk of almost nothing."""
    summed = plants.rounds[number - 1]
    shapes = summed.question.shapes
    names = sorted(shapes)
    start = sum(int(np.prod(shapes[name])) for name in names[: names.index("risk")])
    words = summed.total.copy()
    words[start] = value
    return words_to_bytes(words)


def copying(number: int, said: dict[str, Any], plants: Any) -> dict[str, Any]:
    """What plant-3 says."""
    return dict(plants.now_of("plant-3", said))


def test_an_audit_of_every_round_finds_what_no_sum_shows(cohort: Make) -> None:
    plants = cohort(liar=LIAR, lie=copying)
    while not plants.done:
        assert plants.round() == [], "a sum with a copy is a sum of convex risks"
    (found,) = plants.final_audit()
    assert found.kind == "copied" and found.site in (LIAR, "plant-3") and "lot leaves this one out" in found.text
    honest = cohort()
    while not honest.done:
        assert honest.round() == []
    assert [(each.site, each.kind) for each in honest.final_audit()] == [("", "nobody")]


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


def test_plants_whose_rows_give_no_slope_are_no_copies(tmp_path: Path) -> None:
    """All rows well classified at every point asked: what is left is the ball's part, alike for all."""
    rows = {f"plant-{g}": np.vstack([np.full((8, 3), 0.02 * g), np.full((8, 3), 1 - 0.02 * g)]) for g in range(1, 5)}
    labels = np.repeat([-1.0, 1.0], 8)
    plants = Cohort(
        {name: SiteProblem(each, labels, RobustSpec(1e-3, 1.0)) for name, each in rows.items()}, tmp_path, gap=1e-8
    )
    while not plants.done and len(plants.rounds) < 15:
        assert plants.round() == []
    assert [each.kind for each in plants.final_audit()] == ["nobody"]


def test_a_question_reads_back_as_it_was_written(cohort: Make) -> None:
    plants = cohort(questions=2.0)
    plants.round()
    question = plants.rounds[0].question
    back = Question.read(question.frame())
    assert back.sha256 == question.sha256 and back.shapes == question.shapes
    assert len(back.answers(plants.rounds[0].total)) == 2
    for frame in (b"", question.frame()[:-8], b"BLS1" + bytes(4)):
        with pytest.raises(InvalidInputError, match="no question to a cohort"):
            Question.read(frame)


@pytest.mark.parametrize("seed", range(6))
def test_the_liar_is_found_whoever_it_is(tmp_path: Path, seed: int) -> None:
    sites = problems(seed)
    liar = f"plant-{1 + seed % 4}"
    plants = Cohort(sites, tmp_path, liar, halved)
    found: list[Any] = []
    while not found and not plants.done and len(plants.rounds) < 40:
        found = plants.round()
    assert [each.site for each in found] == [liar]
