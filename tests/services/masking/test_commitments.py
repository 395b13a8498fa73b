"""A commitment binds a plant to its words and says nothing of them; the server refuses one that is of anything else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from services.contracts.wire.masking import MaskingError
from services.masking import committer
from services.masking.commitments import (
    check_commitment,
    check_signature,
    disagreeing,
    opened_words,
    signed,
    statement,
)
from services.masking.committer import Committer
from services.masking.masks import words_from_bytes
from services.masking.unmasking import deliveries

QUESTION = hashlib.sha256(b"what was asked").hexdigest()
Sent = tuple[Any, dict[str, Any], dict[str, Committer], dict[str, Any]]


@pytest.fixture
def sent(make_plants: Callable[..., Any]) -> Sent:
    """Four plants after round 1: plants, preparations, committers, and what each sent."""
    plants = make_plants(4)
    prepared = plants.prepared(1)
    asked, words = deliveries(plants.cohort, 1, prepared), plants.words(3)
    committers = {
        name: Committer(plants.cohort, name, each, plants.signers[name]) for name, each in plants.members.items()
    }
    return plants, prepared, committers, {
        name: each.answer(asked[name], words[name], QUESTION) for name, each in committers.items()
    }


def test_every_plants_opening_gives_its_words_and_its_masked_words(sent: Sent) -> None:
    plants, prepared, committers, answers = sent
    words = plants.words(3)
    assert disagreeing({name: bound for name, (_, bound) in answers.items()}) == []
    for name, (masked, bound) in answers.items():
        check_commitment(plants.cohort, QUESTION, prepared[name], prepared, masked, bound)
        (opening,) = committers[name].openings((1,))
        check_signature(plants.cohort, name, opening)
        assert (opened_words(bound, masked.words, opening) == words[name]).all()
        assert opening.words not in bound.model_dump_json().encode()


def test_the_opening_is_of_its_own_round_where_the_next_is_prepared_already(make_plants: Callable[..., Any]) -> None:
    """A server that prepares ahead must find the plant's words in it, and no masks of the round after."""
    plants = make_plants(3)
    prepared = plants.prepared(1)
    asked, words = deliveries(plants.cohort, 1, prepared), plants.words(3)
    plants.prepared(2)
    for name, member in plants.members.items():
        committer = Committer(plants.cohort, name, member, plants.signers[name])
        masked, bound = committer.answer(asked[name], words[name], QUESTION)
        check_commitment(plants.cohort, QUESTION, prepared[name], prepared, masked, bound)
        (opening,) = committer.openings((1,))
        assert (opened_words(bound, masked.words, opening) == words[name]).all()


def test_two_commitments_to_the_same_words_are_unlike(make_plants: Callable[..., Any]) -> None:
    """Else a server could try words until one fits."""
    told = []
    for run in ("ab" * 16, "ab" * 15 + "ac"):
        plants = make_plants(3, run_id=run)
        name = next(iter(plants.members))
        asked = deliveries(plants.cohort, 1, plants.prepared(1))[name]
        committer = Committer(plants.cohort, name, plants.members[name], plants.signers[name])
        told.append(committer.answer(asked, plants.words(3)[name], QUESTION)[1].words)
        again = committer.answer(asked, plants.words(3)[name], QUESTION)[1]
        assert again.words == told[-1], "the same when it is asked for again"
        with pytest.raises(MaskingError, match="answered round 1 already, to another question"):
            committer.answer(asked, plants.words(3)[name], "0" * 64)
    assert told[0] != told[1]


def test_the_server_refuses_a_commitment_to_anything_else(sent: Sent) -> None:
    plants, prepared, _, answers = sent
    (name, (masked, bound)), (other, (_, bound_too)) = list(answers.items())[:2]
    sign = plants.signers[name]

    def refused(words: str, found: Any = bound, question: str = QUESTION, peers: Any = prepared) -> None:
        with pytest.raises(MaskingError, match=words):
            check_commitment(plants.cohort, question, prepared[name], peers, masked, found)

    refused("not signed by the key", bound.model_copy(update={"words": bytes(32)}))
    refused(f"{other} stands for {name}", bound_too)
    refused("of another question", question="0" * 64)
    refused("of another list of peers", peers=list(prepared)[:3])
    refused("of another masked words", signed(bound.model_copy(update={"masked": bound_too.masked}), sign))
    refused("of another self-mask", signed(bound.model_copy(update={"self_mask": bytes(32)}), sign))
    refused("of another cohort", signed(bound.model_copy(update={"cohort": "0" * 64}), sign))
    refused("of another round", signed(bound.model_copy(update={"round": 2}), sign))


def test_a_signature_says_of_what_kind_of_message_it_is(sent: Sent) -> None:
    """What a plant signed as one thing must never stand for another that has the same fields."""
    _, _, committers, answers = sent
    name, (_, bound) = next(iter(answers.items()))
    (opening,) = committers[name].openings((1,))
    said = [json.loads(statement(each)) for each in (bound, opening)]
    assert [each["ballast"] for each in said] == ["Commitment", "Opening"]
    assert all("signature" not in each and each["round"] == 1 for each in said)


def test_a_pair_that_agreed_on_no_mask_is_seen_before_the_sum(sent: Sent) -> None:
    plants, _, _, answers = sent
    commitments = {name: bound for name, (_, bound) in answers.items()}
    first, second = sorted(commitments)[:2]
    pairs = {**commitments[first].pairs, second: bytes(32)}
    commitments[first] = signed(commitments[first].model_copy(update={"pairs": pairs}), plants.signers[first])
    assert disagreeing(commitments) == [(first, second)]


def test_masked_words_that_are_not_what_was_committed_to_are_seen(sent: Sent) -> None:
    plants, _, committers, answers = sent
    name, (masked, bound) = next(iter(answers.items()))
    (opening,) = committers[name].openings((1,))
    false = words_from_bytes(masked.words).copy()
    false[0] += 1
    data = false.astype("<u8").tobytes()
    with pytest.raises(MaskingError, match="not those that .* committed itself to"):
        opened_words(bound, data, opening)
    recommitted = bound.model_copy(update={"masked": hashlib.sha256(data).hexdigest()})
    with pytest.raises(MaskingError, match="masked other words in round 1"):
        opened_words(recommitted, data, opening)
    with pytest.raises(MaskingError, match="opened round 2 where round 1"):
        opened_words(bound, masked.words, opening.model_copy(update={"round": 2}))


def test_the_answers_that_a_plant_forgets_are_the_oldest(
    make_plants: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The coordinator keeps the last ones too: a plant that forgot those would be taken for one that opens nothing."""
    monkeypatch.setattr(committer, "ROUNDS_KEPT", 2)
    plants, name = make_plants(3), "plant-001"
    keeps = Committer(plants.cohort, name, plants.members[name], plants.signers[name])
    for number in (1, 2, 3):
        asked = deliveries(plants.cohort, number, plants.prepared(number))[name]
        keeps.answer(asked, plants.words(number)[name], QUESTION)
    assert [each.round for each in keeps.openings((3, 2))] == [2, 3]
    with pytest.raises(MaskingError, match="remembers no answer of round 1"):
        keeps.question_of(1)
