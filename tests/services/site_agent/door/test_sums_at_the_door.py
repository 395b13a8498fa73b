"""Runs on sums at a plant's door: what leaves is masked, with plants that the policy allows, and never twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from models.cohorts.fixed_point import from_words, to_words, word_count
from services.contracts.evaluation.calibration import calibration_shapes
from services.contracts.keys.signing import new_seed_file, signer
from services.contracts.wire.codec import decode, encode
from services.contracts.wire.masking import (
    MaskKeys,
    Unmasking,
    UnmaskRequest,
)
from services.contracts.wire.messages import SiteUpdate
from services.masking.keys import MaskKeyPair
from services.masking.scores import summed_scores
from services.masking.unmasking import deliveries
from tests.services.site_agent.party import METHOD, PEERS, RUN, Party, first_question


def test_the_words_are_the_share_of_what_the_plant_would_say_alone(new_party: Callable[..., Party]) -> None:
    shares = {"plant-1": 0.4, "plant-2": 0.3, "plant-3": 0.2, "plant-4": 0.1}
    party = new_party(shares, reveal=("sums", "each site"))
    party.agree()
    heads = len(party.site.asset_type.fault_classes)
    message, shapes = first_question(heads=1 if heads == 2 else heads)
    given = {"parameters": {"questions": 2.0}}
    words = party.sum("round", 1, message, word_count(shapes), **given)
    alone = party.site.ask("round", run_id="cd" * 16, method=METHOD, arrays=message, **given).arrays
    np.testing.assert_array_equal(words, to_words(alone, 0.4, message["points"]))
    found = from_words(words, shapes)
    np.testing.assert_allclose(found["risk"], 0.4 * alone["risk"], atol=1e-11)


def test_scores_are_summed_under_masks_and_counts_are_whole(new_party: Callable[..., Party]) -> None:
    party = new_party(own_scores=True)
    party.agree()
    classes = len(party.site.asset_type.fault_classes)
    heads = 1 if classes == 2 else classes
    shapes: dict[str, tuple[int, ...]] = {"risk": (heads,), "loss": (), "confusion": (classes, classes)}
    arrays = {"weights": np.zeros((heads, 4))}
    words = party.sum("evaluate", 1, arrays, word_count(shapes))
    own = party.site.ask("evaluate", run_id=RUN, method=METHOD, reveal="sums", arrays=arrays).arrays
    found = summed_scores(words, shapes)
    np.testing.assert_array_equal(found["confusion"], own["confusion"])
    assert found["confusion"].sum() > 10
    np.testing.assert_allclose(found["risk"], own["risk"] / 4, atol=1e-11)
    assert (found["risk"] >= own["risk"] / 4).all()


def test_a_policy_that_lists_sums_alone_shows_no_answer_of_its_own(new_party: Callable[..., Party]) -> None:
    party = new_party()
    for kind in ("join", "round", "evaluate"):
        assert party.site.refusal_code(kind, method=METHOD) == "mode_not_allowed"
    asked = {"run_id": RUN, "method": METHOD, "reveal": "sums"}
    assert isinstance(party.site.ask("join", **asked), SiteUpdate)
    assert party.site.refusal_code("evaluate", **asked) == "mode_not_allowed", "its own scores are not released"


def test_a_round_on_sums_without_masks_is_no_task(new_party: Callable[..., Party]) -> None:
    party = new_party()
    message, _ = first_question()
    with pytest.raises(ValidationError, match="must say how its answer is to be masked"):
        party.site.task("round", run_id=RUN, method=METHOD, reveal="sums", arrays=message)
    whole = party.site.task("round", run_id=RUN, method=METHOD, reveal="each site", arrays=message)
    frame = encode(whole).replace(b'"reveal":"each site"', b'"reveal":"sums"     ')
    refused = decode(party.site.door.answer(frame), 1 << 20)
    assert refused.type == "refusal" and refused.code == "bad_task"


def test_a_cohort_that_the_policy_does_not_allow(new_party: Callable[..., Party]) -> None:
    party = new_party(min_cohort=5)
    assert party.ask("agree", party.cohort).code == "cohort_not_allowed"


def test_peers_are_those_whose_keys_the_policy_names(new_party: Callable[..., Party]) -> None:
    party = new_party(peers={peer: "U" + "A" * 55 for peer in PEERS})
    assert party.ask("agree", party.cohort).code == "cohort_not_allowed", "the names are right, the keys are not"


@pytest.mark.parametrize("shares", [
    (0.9997, 1e-4, 1e-4, 1e-4), (0.5, 0.4998, 1e-4, 1e-4), (0.994, 2e-3, 2e-3, 2e-3), (0.5, 2e-3, 2e-3, 2e-3),
])
def test_plants_that_count_for_nothing_are_no_peers(new_party: Callable[..., Party], shares: tuple[float, ...]) -> None:
    party = new_party(dict(zip(("plant-1", *PEERS), shares, strict=True)))
    assert party.ask("agree", party.cohort).code == "cohort_not_allowed"


def test_a_small_plant_is_a_peer_of_a_large_one(new_party: Callable[..., Party]) -> None:
    party = new_party(dict(zip(("plant-1", *PEERS), (0.5, 0.48, 0.01, 0.01), strict=True)))
    assert isinstance(party.ask("agree", party.cohort), SiteUpdate)


def test_a_cohort_that_knows_the_plant_by_another_key_is_refused(
    new_party: Callable[..., Party], tmp_path: Path
) -> None:
    party = new_party(known_as=new_seed_file(tmp_path / "other.nk"))
    assert party.ask("agree", party.cohort).code == "cohort_not_allowed"


def test_a_key_that_a_peer_did_not_sign_is_refused(new_party: Callable[..., Party]) -> None:
    party = new_party()
    party.keys["plant-1"] = party.ask("agree", party.cohort).masking
    forged = MaskKeyPair.new().signed(party.cohort, "plant-2", signer(party.folder / "plant-3.nk"))
    asked = MaskKeys(run_id=RUN, round=1, keys=party.keys | {"plant-2": forged})
    assert party.ask("prepare", asked).code == "masks_refused"


def test_what_a_restart_lost_is_said_so(new_party: Callable[..., Party]) -> None:
    party = new_party()
    asked = MaskKeys(run_id=RUN, round=1, keys=party.keys)
    assert party.ask("prepare", asked).code == "masks_missing"
    party.ask("agree", party.cohort)
    request = UnmaskRequest(run_id=RUN, round=1, answered=tuple(sorted(party.cohort.keys)), absent=())
    refused = party.ask("unmask", Unmasking(run_id=RUN, request=request))
    assert refused.code == "masks_missing", "the keys of the others have not come yet"


def test_who_unmasks_a_round_prepares_the_next_one_with_it_where_that_is_asked(new_party: Callable[..., Party]) -> None:
    """Else each round would cost the plants one more exchange."""
    party = new_party()
    party.agree()
    message, _ = first_question()
    asked = deliveries(party.cohort, 1, party.prepare(1))["plant-1"]
    party.ask("round", asked, round=1, arrays=message, parameters={"questions": 2.0})
    request = UnmaskRequest(run_id=RUN, round=1, answered=tuple(sorted(party.cohort.keys)), absent=())
    alone, ahead = (
        party.ask("unmask", Unmasking(run_id=RUN, request=request, next_round=number)).masking for number in (None, 2)
    )
    assert alone.preparation is None and ahead.preparation.round == 2 and alone.revealed == ahead.revealed
    assert party.prepare(2)["plant-1"] == ahead.preparation


def test_shares_of_another_round_are_not_revealed_nor_a_second_question_told(new_party: Callable[..., Party]) -> None:
    party = new_party()
    party.agree()
    message, shapes = first_question()
    given = {"arrays": message, "parameters": {"questions": 2.0}}
    late = deliveries(party.cohort, 1, party.prepare(1))["plant-1"]
    other = deliveries(party.cohort, 2, party.prepare(2))["plant-1"]
    mixed = late.model_copy(update={"sealed": late.sealed | {"plant-2": other.sealed["plant-2"]}})
    first = party.ask("round", mixed, round=1, **given)
    assert isinstance(first, SiteUpdate) and first.masking == party.ask("round", mixed, round=1, **given).masking
    assert party.ask("round", late, round=1, **given).code == "masks_refused"
    moved = {**message, "points": message["points"] + 0.5}
    assert party.ask("round", mixed, round=1, arrays=moved, parameters={"questions": 2.0}).code == "masks_refused"
    sites = tuple(sorted(party.cohort.keys))
    told = party.ask("unmask", Unmasking(run_id=RUN, request=UnmaskRequest(
        run_id=RUN, round=1, answered=sites, absent=()
    ))).masking
    assert told.revealed.self_shares.keys() == {*sites} - {"plant-2"} and not told.revealed.recovery_shares


def test_both_secrets_of_a_plant_are_never_revealed(new_party: Callable[..., Party]) -> None:
    party = new_party()
    party.agree()
    message, shapes = first_question()
    party.sum("round", 1, message, word_count(shapes), parameters={"questions": 2.0})
    without = UnmaskRequest(run_id=RUN, round=1, answered=("plant-1", "plant-2", "plant-3"), absent=("plant-4",))
    assert party.ask("unmask", Unmasking(run_id=RUN, request=without)).code == "masks_refused"


def test_the_ledger_shows_the_keys_of_the_peers(new_party: Callable[..., Party]) -> None:
    party = new_party()
    party.agree()
    line = json.loads((party.site.folder / "ledger.jsonl").read_text().splitlines()[-1])
    assert line["kind"] == "agree" and line["peers"] == dict(party.cohort.keys) and line["fields"] == []


def test_counts_for_the_calibration_are_summed_under_masks_as_they_are(new_party: Callable[..., Party]) -> None:
    party = new_party({"plant-1": 0.4, "plant-2": 0.3, "plant-3": 0.2, "plant-4": 0.1}, own_scores=True)
    party.agree()
    arrays = {"weights": np.array([[2.0, 1.0, -0.5, -1.2]]), "calibration": np.array(1.0)}
    shapes = calibration_shapes(classes=True)
    words = party.sum("evaluate", 1, arrays, word_count(shapes))
    own = party.site.ask("evaluate", run_id=RUN, method=METHOD, reveal="sums", arrays=arrays).arrays
    found = summed_scores(words, shapes)
    for name in shapes:
        np.testing.assert_array_equal(found[name], own[name])
