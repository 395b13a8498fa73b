"""A plant whose answers cannot be true is left out with a reason that names it, and the run goes on."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from models.methods import certified
from models.methods.catalogue import METHODS
from services.contracts.errors import InvalidInputError
from services.contracts.keys.signing import new_seed_file, public_key, signer
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.wire.codec import encode, pack_arrays, unpack
from services.contracts.wire.messages import Task
from services.coordinator.run_state.run_errors import ContradictingAnswersError, TooFewSitesError
from services.verification.contradiction import verify_evidence, write_evidence
from services.verification.proof import NotProvenError
from tests.services.coordinator.fake_ports import RIG

Arrays = dict[str, Any]
LIAR = "plant-4"


def scaled(name: str, factor: float, first: int = 2) -> Callable[[Task, Arrays], Arrays]:
    """Say so many times what is true, from a round on."""
    def lie(task: Task, arrays: Arrays) -> Arrays:
        return arrays | {name: arrays[name] * factor} if task.kind == "round" and task.round >= first else arrays

    return lie


def lowered(factor: float, first: int = 2) -> Callable[[Task, Arrays], Arrays]:
    """Say a risk that is lower than the true one, and a cut that fits it."""
    risk, height = scaled("risk", factor, first), scaled("cut_height", factor, first)
    return lambda task, arrays: height(task, risk(task, arrays))


def said(name: str, value: float, first: int = 2) -> Callable[[Task, Arrays], Arrays]:
    """Say a number instead of what is true."""
    def lie(task: Task, arrays: Arrays) -> Arrays:
        lies = task.kind == "round" and task.round >= first
        return arrays | {name: np.full_like(arrays[name], value)} if lies else arrays

    return lie


def stale() -> Callable[[Task, Arrays], Arrays]:
    """Say again what was said in round 1."""
    kept: list[Arrays] = []

    def lie(task: Task, arrays: Arrays) -> Arrays:
        if task.kind != "round":
            return arrays
        kept.append(arrays)
        return kept[0]

    return lie


LIES = {
    "negative risk": (scaled("risk", -1.0), "implausible", "no loss is below 0"),
    "risk above all rows": (said("risk", 50.0), "implausible", "no rows have one outside"),
    "no number": (said("slope", float("nan")), "not_finite", "not finite"),
    "infinite": (said("minorant_offset", float("inf")), "not_finite", "not finite"),
    "overflowing": (said("minorant_offset", -1e300), "implausible", "above 1e"),
    "no digits left": (said("cut_height", -1e20), "implausible", "no cut is worth that"),
    "no digits left of a minorant": (said("minorant_offset", -1e18), "implausible", "no cut is worth that"),
    "too steep": (scaled("slope", 1e6), "implausible", "none is above"),
    "too much norm": (said("norm_weight", 0.5), "implausible", "its norm weight is 0.5"),
    "risk too low at zero": (scaled("risk", 0.5, first=1), "implausible", "no rows have one outside 1 to 1 there"),
    "risk too low": (lowered(0.7), "contradiction", "lies below"),
    "cut above the risk": (scaled("cut_height", 1.1), "contradiction", "lies below"),
    "slope flipped": (scaled("slope", -1.0, first=1), "contradiction", "lies below"),
    "slope doubled": (scaled("slope", 1.9, first=1), "contradiction", "lies below"),
    "minorant raised": (scaled("minorant_offset", 1.5), "contradiction", "lies below"),
    "stale": (stale(), "contradiction", "lies below"),
}


@pytest.mark.parametrize("lie", LIES)
def test_the_liar_is_left_out_and_the_honest_make_the_model(works: Any, lie: str) -> None:
    falsify, code, words = LIES[lie]
    works.plants[LIAR].falsify = falsify
    run = works.run(min_sites=3)
    trained = works.train(run)
    run = works.store.get_run(run.run_id)
    (excluded,) = run.excluded
    assert (excluded.site_id, excluded.code) == (LIAR, code) and words in excluded.reason
    assert "\n" not in excluded.reason
    assert [site.site_id for site in run.members] == ["plant-1", "plant-2", "plant-3"]
    told = [(record.round, each.reason) for record in works.store.records for each in record.answers
            if each.status == "excluded"]
    assert told == [(excluded.round, excluded.reason)], "said once, in the round of its exclusion"
    if code == "contradiction":
        lines = verify_evidence(works.store.evidence[LIAR])
        assert f"{LIAR} contradicts itself in run {run.run_id}" in lines[0]
        assert public_key(works.plants[LIAR].seed_file) in lines[1]
    assert set(works.store.evidence) == ({LIAR} if code == "contradiction" else set())
    asked_last = max(task.round for task in works.plants[LIAR].asked)
    assert asked_last == excluded.round, "it is asked no more"

    honest = works.train(three(works))
    assert trained.certificate.gap <= 1e-3 and set(trained.site_risks) == {"plant-1", "plant-2", "plant-3"}
    ours, theirs = trained.certificate, honest.certificate
    assert max(ours.lower, theirs.lower) <= min(ours.upper, theirs.upper) + 1e-9, "bounds of one problem"


FRAMES = {
    "a side without end": b'{"arrays":[["a",[1e999]]],"signed":false}',
    "no number, in more memory than there is": b'{"arrays":[["a",[0,4611686018427387904]]],"signed":false}',
    "no number, in sides without a place": b'{"arrays":[["a",[0,1180591620717411303424]]],"signed":false}',
}


@pytest.mark.parametrize("reveal", ["each site", "sums"])
@pytest.mark.parametrize("frame", FRAMES)
def test_no_bytes_of_a_plant_end_the_run_of_the_others(works: Any, frame: str, reveal: str) -> None:
    """They need no signature: whoever may answer for one plant would stop all."""
    text = FRAMES[frame]
    sent = b"BLS1" + len(text).to_bytes(4, "little") + text
    works.plants[LIAR].behave = lambda task: sent if task.kind in ("round", "prepare") else None
    run = works.run(min_sites=3, reveal=reveal, method="level-bundle" if reveal == "each site" else "cohort-bundle")
    works.train(run)
    answers = [each for record in works.store.records for each in record.answers if each.site_id == LIAR]
    assert works.store.get_run(run.run_id).rounds and {each.code for each in answers} == {"bad_frame"}


@pytest.mark.parametrize("where", ["reason", "task_sha256", "type"])
def test_words_of_a_plant_stay_on_their_line(
    works: Any, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A refusal, an answer to another task, and a frame of no type; what each says is logged and kept."""
    hostile, plant = "no rows\n2031-01-01 INFO all is well\x1b[2J\u202e", works.plants[LIAR]

    def refuse(task: Task) -> bytes | None:
        if task.kind not in ("round", "agree", "prepare"):
            return None
        said = dict(unpack(plant.refusal_of(task, "method_not_allowed")).header) | {where: hostile}
        return pack_arrays(said, {}, signer(plant.seed_file))

    plant.behave = refuse
    works.train(works.run(min_sites=3, reveal="sums", method="cohort-bundle"))
    told = [each.reason for record in works.store.records for each in record.answers if each.site_id == LIAR]
    assert told and all("all is well" in each and each.isprintable() for each in told)
    assert all(line.getMessage().isprintable() for line in caplog.records)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("swing", -1e-3, "no loss is below 0"),
        ("minorant_swing", 0.6, "its minorant swing is 0.6"),
        ("swing", 0.15, "none is above 0.1"),
    ],
)
def test_on_a_box_a_swing_that_cannot_be_is_left_out(works: Any, name: str, value: float, words: str) -> None:
    spec = {"support": "sensor_ranges", "radius": {"rule": "fixed", "value": 0.1}}
    works.plants[LIAR].falsify = said(name, value)
    run = works.run(min_sites=3, spec=spec)
    trained = works.train(run)
    (excluded,) = works.store.get_run(run.run_id).excluded
    assert (excluded.site_id, excluded.code) == (LIAR, "implausible") and words in excluded.reason
    assert trained.certificate.gap <= 1e-3


def three(works: Any) -> Any:
    """A run of the honest plants alone."""
    works.plants.pop(LIAR, None)
    return works.run(min_sites=3)


def test_a_contradiction_names_the_two_rounds(works: Any) -> None:
    works.plants[LIAR].falsify = lowered(0.9, first=4)
    run = works.run(min_sites=3, method="fdr-sm", max_rounds=40)
    works.train(run)
    (excluded,) = works.store.get_run(run.run_id).excluded
    told = re.search(r"of round (\d+) lies below .* its answer of round (\d+) proves", excluded.reason)
    assert told is not None, excluded.reason
    rounds = sorted(int(number) for number in told.groups())
    assert rounds[0] < rounds[1] == excluded.round
    digests = {
        each.payload_sha256 for record in works.store.records if record.round in rounds
        for each in record.answers if each.site_id == LIAR
    }
    assert len(digests) == 2, "both answers can be told by their digests"


@pytest.mark.parametrize("method", METHODS)
def test_whatever_the_method_goes_on_over_fewer_sites(works: Any, method: str) -> None:
    """The liar's risk turns negative in round 3; every method ends with bounds that hold, over the others."""
    works.plants[LIAR].falsify = scaled("risk", -1.0, first=3)
    smooth = METHODS[method].needs_smooth_loss
    spec = {"radius": {"rule": "fixed", "value": 0.02}, "loss": "logistic" if smooth else "hinge"}
    run = works.run(min_sites=3, max_rounds=8, method=method, spec=spec)
    trained = works.train(run)
    run = works.store.get_run(run.run_id)
    assert [(each.site_id, each.round) for each in run.excluded] == [(LIAR, 3)]
    assert run.rounds == 8 or trained.certificate.gap <= 1e-3
    assert np.isfinite(trained.weights).all() and 0 <= trained.certificate.lower <= trained.certificate.upper < np.inf
    assert set(trained.worst_weights) == {"plant-1", "plant-2", "plant-3"}


def test_two_liars_are_left_out_in_one_round(works: Any) -> None:
    works.plants["plant-3"].falsify = said("risk", -1.0)
    works.plants[LIAR].falsify = scaled("slope", -1.0, first=1)
    run = works.run(min_sites=2)
    trained = works.train(run)
    assert [each.site_id for each in works.store.get_run(run.run_id).excluded] == ["plant-3", LIAR]
    assert trained.certificate.gap <= 1e-3


def test_with_too_few_sites_left_the_run_ends_with_one_line(works: Any) -> None:
    works.plants[LIAR].falsify = scaled("risk", -1.0)
    with pytest.raises(TooFewSitesError) as failure:
        works.train(works.run(min_sites=4))
    text = str(failure.value)
    assert text.startswith("3 of the 4 sites that the plan needs are left: plant-4 left out in round 2: its risk is -")
    assert "\n" not in text


def test_an_excluded_site_stays_out_after_a_kill(works: Any) -> None:
    works.plants[LIAR].falsify = lambda task, arrays: scaled("risk", -1.0)(task, arrays) if task.round == 2 else arrays
    works.store.lose_after = 5
    run = works.run(min_sites=3)
    with pytest.raises(KeyboardInterrupt):
        works.train(run)
    works.store.lose_after = None
    trained = works.train(works.store.get_run(run.run_id))
    assert max(task.round for task in works.plants[LIAR].asked) == 2
    assert trained.certificate.gap <= 1e-3 and LIAR not in trained.site_risks


def test_a_kill_before_the_commit_forgets_nothing_that_counts(works: Any) -> None:
    works.plants[LIAR].falsify = scaled("risk", -1.0)
    works.store.lose_after = 2
    run = works.run(min_sites=3)
    with pytest.raises(KeyboardInterrupt):
        works.train(run)
    assert works.store.get_run(run.run_id).excluded == ()
    works.store.lose_after = None
    works.train(works.store.get_run(run.run_id))
    assert [each.site_id for each in works.store.get_run(run.run_id).excluded] == [LIAR]


def test_bounds_that_contradict_with_nobody_convicted_end_the_run_with_one_line(
    works: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certified, "find_contradiction", lambda evidence, problem, site: None)
    for plant in works.plants.values():
        plant.falsify = scaled("minorant_offset", 3.0)
    with pytest.raises(ContradictingAnswersError) as failure:
        works.train(works.run())
    assert "no bound holds after round" in str(failure.value) and "\n" not in str(failure.value)


def test_an_evaluation_that_cannot_be_is_rejected_and_leaves_no_score(works: Any) -> None:
    import asyncio

    works.plants["plant-1"].falsify = lambda task, arrays: (
        arrays | {"confusion": np.full((2, 2), 2.5)} if task.kind == "evaluate" else arrays
    )
    works.plants["plant-2"].falsify = lambda task, arrays: (
        arrays | {"risk": -arrays["risk"]} if task.kind == "evaluate" else arrays
    )
    run = works.join(works.run())
    found = asyncio.run(works.coordinator().evaluate(run, np.zeros((1, 3))))
    assert sorted(found.confusion) == ["plant-3", "plant-4"]
    assert {(each.site_id, each.status, each.code) for each in found.answers} >= {
        ("plant-1", "rejected", "implausible"), ("plant-2", "rejected", "implausible"),
    }


def _evidence(works: Any) -> dict[str, Any]:
    """Against a plant whose answers of two rounds contradict each other."""
    works.plants[LIAR].falsify = lowered(0.9, first=4)
    works.train(works.run(min_sites=3, method="fdr-sm", max_rounds=40))
    return dict(json.loads(works.store.evidence[LIAR]))


def _packed(frame: bytes) -> str:
    return base64.b64encode(frame).decode()


def test_evidence_that_was_changed_proves_nothing(works: Any) -> None:
    found = _evidence(works)
    pairs = found["exchanges"]
    assert len(pairs) == 2 and pairs[0] != pairs[1]

    answer = unpack(base64.b64decode(pairs[0]["answer"]))
    task = unpack(base64.b64decode(pairs[0]["task"]))
    louder = {name: array * 2.0 if name == "cut_height" else array for name, array in answer.arrays.items()}
    other = new_seed_file(works.plants[LIAR].seed_file.with_name("other.nk"))
    by_other = pack_arrays(answer.header, louder, signer(works.plants[LIAR].seed_file.with_name("other.nk")))
    moved = pack_arrays(task.header, {name: array + 0.5 for name, array in task.arrays.items()})
    honest = works.store.exchanges[next(key for key in works.store.exchanges if key[2] == "plant-1")]
    to_others = works.plants[LIAR].update(honest[0], unpack(honest[0]).message())
    changes: list[tuple[dict[str, Any], str]] = [
        ({"exchanges": [{"task": _packed(honest[0]), "answer": _packed(to_others)}, pairs[1]]}, "not of plant-4"),
        ({"exchanges": [{**pairs[0], "answer": _packed(by_other)}, pairs[1]]}, "not signed by"),
        ({"exchanges": [{**pairs[0], "answer": _packed(pack_arrays(answer.header, louder))}, pairs[1]]}, "not signed"),
        ({"exchanges": [{**pairs[0], "task": _packed(moved)}, pairs[1]]}, "to another task"),
        ({"exchanges": [{**pairs[0], "task": pairs[1]["task"]}, pairs[1]]}, "to another task"),
        ({"exchanges": [{"task": _packed(honest[0]), "answer": _packed(honest[1])}, pairs[1]]}, "not signed by"),
        ({"exchanges": []}, "different problems"),
        ({"public_key": other}, "not signed by"),
        ({"site_id": "plant-1"}, "not of plant-1"),
        ({"run_id": "f" * 32}, "not of plant-4"),
    ]
    for change, words in changes:
        with pytest.raises(NotProvenError, match=words):
            verify_evidence(json.dumps({**found, **change}).encode())
    for text in ("", "[]", json.dumps({**found, "schema": "x"}), json.dumps({**found, "exchanges": [{}]})):
        with pytest.raises(InvalidInputError, match="not an evidence file"):
            verify_evidence(text.encode())


FRAMED = {
    "by another method": ("round", {"method": "standard"}),
    "by the evaluation of a method without a ball": ("evaluate", {}),
    "with another contract": ("round", {"contract": "f" * 64}),
    "with other parameters": ("round", {"parameters": {"level": 0.5}}),
}


@pytest.mark.parametrize("how", FRAMED)
def test_an_honest_plant_that_is_asked_for_two_risks_gives_no_evidence_against_itself(works: Any, how: str) -> None:
    """Both tasks state one ball and one loss, and what they ask for differs all the same."""
    kind, changes = FRAMED[how]
    plant, point = works.plants["plant-1"], np.array([[0.5, -0.4, 0.1]])
    arrays = {"point": point, "centre": point, "penalty": np.array([0.5])}
    spec = TrainingSpec.model_validate({"radius": {"rule": "fixed", "value": 0.1}, "label_flip_cost": 0.3})
    first = Task(
        kind="round", site_id="plant-1", run_id="a" * 32, round=1, method="standard" if kind == "evaluate" else
        "level-bundle", asset_type="rig", contract=RIG.fingerprint, spec=spec, arrays=arrays,
    )
    second = first.model_copy(update={
        "kind": kind, "round": 2, "arrays": {"weights": point} if kind == "evaluate" else arrays, **changes,
    })
    if how in ("with another contract", "with other parameters"):  # as if its rows, or its method's risk, were others
        plant.falsify = lambda task, arrays: arrays | {"risk": arrays["risk"] + (task.round == 2)}
    kept = [(encode(task), plant.answer(encode(task)).frame) for task in (first, second)]
    risks = [float(unpack(answer).arrays["risk"][0]) for _, answer in kept]
    assert abs(risks[1] - risks[0]) > 0.1
    with pytest.raises(NotProvenError, match="different (problems|risks)"):
        verify_evidence(write_evidence("a" * 32, "plant-1", plant.public_key, kept))


def test_honest_answers_are_no_evidence(works: Any) -> None:
    """Of any two rounds of an honest plant."""
    run = works.run(max_rounds=6)
    works.train(run)
    plant = works.plants["plant-1"]
    kept = [each for (_, _, site), each in sorted(works.store.exchanges.items()) if site == "plant-1"]
    assert len(kept) == 6
    data = write_evidence(run.run_id, "plant-1", public_key(plant.seed_file), kept)
    with pytest.raises(NotProvenError, match="contradict one another nowhere"):
        verify_evidence(data)
