"""What a plant tells at the end is held against what it told before; a plant that lies then is trained on without."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from typing import Any

import numpy as np
import pytest

from models.methods.catalogue import METHODS
from services.contracts.keys.signing import signer
from services.contracts.wire.codec import pack_arrays, unpack
from services.coordinator.run_state.run_errors import TooFewSitesError
from services.verification.contradiction import verify_evidence, write_evidence
from services.verification.proof import NotProvenError

LIAR = "plant-4"


def at_the_end(name: str, change: Any) -> Any:
    """Say something else of one array when the model is evaluated."""
    return lambda task, arrays: arrays | {name: change(arrays[name])} if task.kind == "evaluate" else arrays


def evaluate(works: Any, run: Any, trained: Any) -> Any:
    return asyncio.run(works.coordinator().evaluate(run, trained.weights, trained.risk_bound))


@pytest.mark.parametrize(
    ("factor", "words"),
    [(0.5, r"the risk 0\.\d+ of the evaluation lies below 0\.\d+, which its answer of round \d+ proves"),
     (1.01, r"the risk 0\.\d+ of round \d+ lies below 0\.\d+, which its answer of the evaluation proves")],
)
@pytest.mark.parametrize("intercept", [True, False])
def test_a_risk_that_its_own_answers_refute_is_trained_on_without(
    works: Any, factor: float, words: str, intercept: bool
) -> None:
    works.plants[LIAR].falsify = at_the_end("risk", lambda risk: factor * risk)
    run = works.run(min_sites=3, spec={"radius": {"rule": "fixed", "value": 0.02}, "fit_intercept": intercept})
    trained = works.train(run)
    run = works.store.get_run(run.run_id)
    found = evaluate(works, run, trained)
    (verdict,) = found.convicted
    assert (verdict.site_id, verdict.status, verdict.code) == (LIAR, "excluded", "contradiction")
    assert re.search(words, verdict.reason)
    assert verdict in found.answers and len(found.answers) == 4
    assert set(found.risk) == set(found.confusion) == {"plant-1", "plant-2", "plant-3"}

    after = asyncio.run(works.coordinator().train(run, None, found))
    run = works.store.get_run(run.run_id)
    assert [(each.site_id, each.round, each.code) for each in run.excluded] == [
        (LIAR, trained.rounds + 1, "contradiction")
    ]
    assert after.certificate.gap <= 1e-3 and set(after.site_risks) == {"plant-1", "plant-2", "plant-3"}
    again = evaluate(works, run, after)
    assert again.convicted == () and set(again.risk) == {"plant-1", "plant-2", "plant-3"}
    lines = verify_evidence(works.store.evidence[LIAR])
    assert f"{LIAR} contradicts itself" in lines[0] and "the evaluation" in lines[0]


def test_a_risk_at_other_weights_is_held_against_the_cuts(works: Any) -> None:
    """No point of the run is asked again: the cuts alone refute what is too low, and leave what is too high."""
    run = works.run(min_sites=3)
    trained = works.train(run)
    run = works.store.get_run(run.run_id)
    trained.weights[0, 0] += 1e-3
    for factor, convicted in ((1.0, False), (1.2, False), (0.9, True)):
        works.plants[LIAR].falsify = at_the_end("risk", lambda risk, factor=factor: factor * risk)
        found = evaluate(works, run, trained)
        assert bool(found.convicted) == convicted, factor
        if convicted:
            assert "lies below" in verify_evidence(found.evidence[LIAR])[0]


def test_evidence_of_an_honest_evaluation_proves_nothing(works: Any) -> None:
    works.plants[LIAR].falsify = at_the_end("risk", lambda risk: 0.5 * risk)
    run = works.run(min_sites=3)
    trained = works.train(run)
    found = evaluate(works, works.store.get_run(run.run_id), trained)
    document = json.loads(found.evidence[LIAR])
    for pairs in (document["exchanges"][:1], document["exchanges"][1:]):
        with pytest.raises(NotProvenError, match="contradict one another nowhere"):
            verify_evidence(json.dumps({**document, "exchanges": pairs}).encode())


def test_an_honest_plants_rounds_and_its_evaluation_are_no_evidence(works: Any) -> None:
    run = works.run(min_sites=3)
    trained = works.train(run)
    kept: list[Any] = []
    ask = works.transport.ask

    async def recorded(frames: Any, seconds: float) -> Any:
        told = await ask(frames, seconds)
        kept.append((frames["plant-1"], told["plant-1"].frame))
        return told

    works.transport.ask = recorded
    assert evaluate(works, works.store.get_run(run.run_id), trained).convicted == ()
    rounds = [each for (_, _, site), each in sorted(works.store.exchanges.items()) if site == "plant-1"]
    key = works.plants["plant-1"].public_key
    with pytest.raises(NotProvenError, match="contradict one another nowhere"):
        verify_evidence(write_evidence(run.run_id, "plant-1", key, [*rounds, *kept]))


@pytest.mark.parametrize("kind", ["round", "evaluate"])
def test_a_signed_answer_that_is_no_number_or_does_not_fit_proves_nothing(works: Any, kind: str) -> None:
    """Such an answer was never let in: nothing may be read out of it."""
    works.plants[LIAR].falsify = at_the_end("risk", lambda risk: 0.5 * risk)
    run = works.run(min_sites=3)
    trained = works.train(run)
    document = json.loads(evaluate(works, works.store.get_run(run.run_id), trained).evidence[LIAR])
    frames = [{name: base64.b64decode(text) for name, text in pair.items()} for pair in document["exchanges"]]
    kept = [(pair["task"], pair["answer"]) for pair in frames]
    place = next(k for k, (_, answer) in enumerate(kept) if unpack(answer).header["kind"] == kind)
    task, frame = kept[place]
    answer, sign = unpack(frame), signer(works.plants[LIAR].seed_file)
    key = works.plants[LIAR].public_key
    names = ("risk",) if kind == "evaluate" else (
        "risk", "cut_height", "slope", "norm_weight", "minorant_offset", "minorant_slope", "minorant_norm_weight",
    )
    for name in names:
        array = answer.arrays[name]
        for wrong in (np.full_like(array, np.nan), np.full_like(array, np.inf), np.zeros((*array.shape, 2))):
            told = pack_arrays(answer.header, answer.arrays | {name: wrong}, sign)
            pairs = [(task, told) if k == place else each for k, each in enumerate(kept)]
            with pytest.raises(NotProvenError, match="fit the|no risk and cut"):
                verify_evidence(write_evidence(run.run_id, LIAR, key, pairs))
        if name in ("minorant_offset", "minorant_norm_weight"):
            left = {each: array for each, array in answer.arrays.items() if each != name}
            told = pack_arrays(answer.header, left, sign)
            pairs = [(task, told) if k == place else each for k, each in enumerate(kept)]
            with pytest.raises(NotProvenError, match="no risk and cut"):
                verify_evidence(write_evidence(run.run_id, LIAR, key, pairs))


def test_a_liar_at_the_end_of_a_run_that_needs_it_ends_the_run_with_one_line(works: Any) -> None:
    works.plants[LIAR].falsify = at_the_end("risk", lambda risk: 0.5 * risk)
    run = works.run(min_sites=4)
    trained = works.train(run)
    run = works.store.get_run(run.run_id)
    with pytest.raises(TooFewSitesError, match="3 of the 4 sites .* are left: plant-4 left out") as told:
        asyncio.run(works.coordinator().train(run, None, evaluate(works, run, trained)))
    assert "\n" not in str(told.value)


def test_at_the_round_limit_one_round_without_the_liar_is_still_run(works: Any) -> None:
    works.plants[LIAR].falsify = at_the_end("risk", lambda risk: 0.5 * risk)
    run = works.run(min_sites=3, max_rounds=3)
    trained = works.train(run)
    run = works.store.get_run(run.run_id)
    after = asyncio.run(works.coordinator().train(run, None, evaluate(works, run, trained)))
    assert (trained.rounds, after.rounds) == (3, 4) and LIAR not in after.site_risks


@pytest.mark.parametrize("method", METHODS)
def test_honest_plants_are_never_convicted_at_the_end(works: Any, method: str) -> None:
    smooth = METHODS[method].needs_smooth_loss
    spec = {"radius": {"rule": "fixed", "value": 0.02}, "loss": "logistic" if smooth else "hinge"}
    run = works.run(min_sites=3, max_rounds=5, method=method, spec=spec)
    trained = works.train(run)
    found = evaluate(works, works.store.get_run(run.run_id), trained)
    assert found.convicted == () and len(found.risk) == 4


def test_counts_that_the_rows_cannot_give_are_rejected(works: Any) -> None:
    works.plants[LIAR].falsify = at_the_end("confusion", lambda counts: counts * 100.0)
    run = works.run(min_sites=3)
    trained = works.train(run)
    found = evaluate(works, works.store.get_run(run.run_id), trained)
    assert [(each.site_id, each.status, each.code) for each in found.answers if each.status != "accepted"] == [
        (LIAR, "rejected", "implausible")
    ]
    told = next(each.reason for each in found.answers if each.site_id == LIAR)
    assert told == "it counted 4,000 held-out rows and joined with 40 for training: at most 19 to one are believed"
    assert LIAR not in found.confusion and LIAR not in found.loss


def test_a_loss_above_what_rows_can_give_is_rejected(works: Any) -> None:
    works.plants[LIAR].falsify = at_the_end("loss", lambda loss: np.array(loss + 1000.0))
    run = works.run(min_sites=3)
    trained = works.train(run)
    found = evaluate(works, works.store.get_run(run.run_id), trained)
    told = next(each for each in found.answers if each.site_id == LIAR)
    assert (told.status, told.code) == ("rejected", "implausible") and "loss" in told.reason
