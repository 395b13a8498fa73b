"""A cohort whose sums contradict themselves: the verdict on the opened rounds names the liar and nobody else."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from services.auditing.auditor import AuditCase, Finding, audit
from services.auditing.questions import Question
from services.auditing.request import falsehood_of_sums, unsealed
from services.auditing.verdict import judged, read_verdict, verify_sum_evidence
from services.contracts.errors import InvalidInputError
from services.contracts.keys.signing import new_seed_file, public_key, signer
from services.masking.commitments import signed
from services.verification.proof import NotProvenError
from tests.attacks.cohort import Cohort
from tests.services.auditing.conftest import LIAR, halved, problems

Make = Callable[..., Cohort]


def of(case: AuditCase, **changes: Any) -> AuditCase:
    return case.model_copy(update=changes)


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
    told = json.loads(verdict.text())
    for change in ({"rounds": [*told["rounds"], 9]}, {"findings": []}, {"run_id": "f" * 32}, {"cohort": "0" * 64}):
        with pytest.raises(NotProvenError, match="not signed by the auditor"):
            read_verdict(json.dumps(told | change).encode(), cohort.auditor, cohort.cohort)
    elsewhere = cohort.cohort.model_copy(update={"name": "cohort-2"})
    with pytest.raises(NotProvenError, match="another run or cohort"):
        read_verdict(verdict.text(), cohort.auditor, elsewhere)


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


def test_an_answer_is_evidence_of_the_question_and_the_cohort_that_it_was_given_to(
    found: tuple[Cohort, AuditCase],
) -> None:
    """Its words say something else at other points, and no plant is convicted where it did not answer."""
    cohort, case = found
    key = cohort.files["auditor"]
    document = json.loads(judged(case, audit(case, key), cohort.auditor, signer(key))[1][LIAR])
    (first, second) = (Question.read(base64.urlsafe_b64decode(each)) for each in document["questions"])
    moved = replace(second, points=second.points + 1.0)
    later = replace(second, round=second.round + 1)
    assert moved.round == second.round != first.round
    told = document["cohort"]
    for change in (
        {"questions": [document["questions"][0], base64.urlsafe_b64encode(moved.frame()).decode()]},
        {"questions": [document["questions"][0], base64.urlsafe_b64encode(later.frame()).decode()]},
        {"cohort": told | {"name": "cohort-9"}}, {"cohort": told | {"run_id": "cd" * 16}},
    ):
        with pytest.raises(NotProvenError, match=f"{LIAR} did not commit itself to an answer to the question"):
            verify_sum_evidence(json.dumps({**document, **change}).encode())


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


def test_a_case_that_the_plants_did_not_sign_convicts_nobody(found: tuple[Cohort, AuditCase]) -> None:
    cohort, case = found
    key = cohort.files["auditor"]
    first = {**case.commitments[0], "plant-1": case.commitments[0]["plant-2"]}
    swapped = {**case.sealed, "plant-1": case.sealed["plant-2"]}
    fewer = {name: each for name, each in case.masked[0].items() if name != "plant-1"}
    one, other = case.request.rounds
    relabelled = case.sealed["plant-1"].model_copy(update={"box": case.sealed["plant-2"].box})
    replayed = case.sealed["plant-1"].model_copy(update={"run_id": "cd" * 16})
    replayed = replayed.model_copy(update={"signature": cohort.signers["plant-1"](replayed.statement)})
    points = replace(other.asked, points=other.asked.points + 1.0)
    elsewhere = other.model_copy(update={"question": points.frame()})
    for change, words in (
        ({"sealed": {**case.sealed, "plant-1": relabelled}}, "box of plant-1 is not signed"),
        ({"sealed": {**case.sealed, "plant-1": replayed}}, "box of plant-1 is not signed by it for this run"),
        ({"request": case.request.model_copy(update={"rounds": (one, elsewhere)})}, "not of the question of round"),
        ({"request": case.request.model_copy(update={"rounds": (one, one)}), "masked": case.masked[:1] * 2,
          "commitments": case.commitments[:1] * 2}, "each once"),
        ({"commitments": (first, case.commitments[1])}, "stands for plant-1"),
        ({"commitments": case.commitments[::-1]}, "not of the question"),
        ({"sealed": swapped}, "box of plant-1 is not signed"),
        ({"masked": (fewer, case.masked[1])}, "what each plant sent"),
        ({"request": case.request.model_copy(update={"rounds": (one, one)})}, "not of the question"),
        ({"masked": case.masked[:1]}, "in each of its rounds"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            audit(of(case, **change), key)


def test_a_commitment_of_another_round_or_cohort_convicts_nobody(found: tuple[Cohort, AuditCase]) -> None:
    """Though its plant signed it: the coordinator was to refuse it when it came."""
    cohort, case = found
    for change in ({"round": 99}, {"cohort": "0" * 64}):
        bound = signed(case.commitments[0]["plant-1"].model_copy(update=change), cohort.signers["plant-1"])
        told = ({**case.commitments[0], "plant-1": bound}, case.commitments[1])
        with pytest.raises(InvalidInputError, match="plant-1 is not of the question of round"):
            audit(of(case, commitments=told), cohort.files["auditor"])


def test_who_contradicts_itself_in_one_answer_is_found_by_it_whoever_else_was_in_a_sum(cohort: Make) -> None:
    def above(number: int, said: dict[str, Any], plants: object) -> dict[str, Any]:
        return said | {"cut_height": said["risk"] + 0.5} if number == 2 else said

    plants = cohort(liar=LIAR, lie=above)
    assert plants.round() == []
    assert [(each.site, each.kind) for each in plants.round()] == [(LIAR, "contradiction")]
    case, key = plants.case(2, every_round=True), plants.files["auditor"]
    (finding,) = audit(case, key, every_round=True)
    assert (finding.site, finding.kind, [each.round for each in finding.openings]) == (LIAR, "contradiction", [2])
    assert f"{LIAR} lied" in verify_sum_evidence(judged(case, [finding], plants.auditor, signer(key))[1][LIAR])[0]
    (one, other), names = plants.request(1, 2).rounds, sorted(plants.sites)
    one = one.model_copy(update={"answered": tuple(names[1:])})
    other = other.model_copy(update={"answered": tuple(names[:3])})
    assert falsehood_of_sums((one, other)) and falsehood_of_sums((other, one)), "neither sum is of more plants"


def test_three_rounds_are_audited_only_where_all_are(cohort: Make) -> None:
    plants = cohort()
    for _ in range(3):
        assert plants.round() == []
    case = plants.case(1, 2, 3, every_round=True)
    (found,) = audit(case, plants.files["auditor"], every_round=True)
    assert (found.kind, found.text) == ("nobody", "no plant's own answers contradict each other")
    with pytest.raises(InvalidInputError, match="contradict each other nowhere"):
        audit(case, plants.files["auditor"])


def test_a_verdict_convicts_nobody_beside_the_cohort(found: tuple[Cohort, AuditCase]) -> None:
    cohort, case = found
    key = cohort.files["auditor"]
    for site, convicts in (("plant-2", True), ("plant-9", False)):
        verdict, files = judged(case, [Finding(site, "silent", "opened nothing")], cohort.auditor, signer(key))
        assert files == {}
        if convicts:
            assert set(read_verdict(verdict.text(), cohort.auditor, cohort.cohort).convicted) == {site}
            continue
        with pytest.raises(NotProvenError, match="convicts plant-9, which is not in the cohort"):
            read_verdict(verdict.text(), cohort.auditor, cohort.cohort)


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
