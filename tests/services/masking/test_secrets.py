"""What an honest plant never reveals, and what it is asked for in vain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from services.contracts.wire.masking import MaskingError, UnmaskRequest
from services.masking.keys import MaskKeyPair, _statement, agree, check_mask_key, derive, seal, stream
from services.masking.masks import (
    RECOVERY,
    SELF,
    commitment,
    pair_key,
    pair_mask,
    secret_key,
    share_key,
    words_from_bytes,
)
from services.masking.member import Member
from services.masking.secret_sharing import new_secret
from services.masking.unmasking import _Opener, deliveries, unmask_request, unmasked_sum

Make = Callable[..., Any]


def test_of_an_absent_plant_that_answered_late_nothing_is_learnt(make_plants: Make) -> None:
    """Its pair masks are recovered and its late words arrive: the self-mask still hides them, and no share opens it."""
    plants, late = make_plants(5), "plant-004"
    prepared, words = plants.prepared(1), plants.words(1, 50)
    masked = plants.masked(1, prepared, words)
    request = unmask_request(plants.cohort, 1, prepared, {name: masked[name] for name in masked if name != late})
    revealed = {name: plants.members[name].reveal(request) for name in request.answered}
    assert not any(late in each.self_shares for each in revealed.values())
    with pytest.raises(MaskingError, match="0 of the 4 shares of plant-004 that a sum needs are there in round 1"):
        _Opener(plants.cohort, request, revealed, plants.cohort.places).secret(prepared[late], SELF)
    found = words_from_bytes(masked[late].words)
    opener = _Opener(plants.cohort, request, revealed, plants.cohort.places)
    for peer, key in opener.pair_keys(prepared[late]).items():
        found = found - pair_mask(key, late, peer, found.size)
    assert not (found == words[late]).any()
    own = plants.members[late]._rounds[1]
    left = found - words[late]
    assert np.unpackbits(left.view(np.uint8)).mean() == pytest.approx(0.5, abs=0.05)
    assert own.masked is not None and own.request is None


def test_both_secrets_of_a_plant_are_never_revealed(make_plants: Make) -> None:
    plants = make_plants(4)
    prepared, words = plants.prepared(1), plants.words(1)
    masked = plants.masked(1, prepared, words)
    first = unmask_request(plants.cohort, 1, prepared, masked)
    second = unmask_request(plants.cohort, 1, prepared, {name: masked[name] for name in list(masked)[:3]})
    told = plants.members["plant-000"].reveal(first)
    assert set(told.self_shares) == set(masked) and not told.recovery_shares
    assert plants.members["plant-000"].reveal(first) == told
    with pytest.raises(MaskingError, match="revealed its shares of round 1 for other answers"):
        plants.members["plant-000"].reveal(second)
    both = UnmaskRequest(run_id=first.run_id, round=1, answered=first.answered, absent=("plant-003",))
    with pytest.raises(MaskingError, match="the request is of others"):
        plants.members["plant-001"].reveal(both)


@pytest.mark.parametrize(("answered", "absent"), [
    ((0, 1, 2), ()), ((1, 2, 3), (0,)), ((0, 1, 2, 3, 4), ()), ((0, 1, 2), (3, 4)),
], ids=["one is in neither", "itself is absent", "one more answered", "one more is absent"])
def test_a_request_of_other_plants_than_took_part_is_refused(
    make_plants: Make, answered: tuple[int, ...], absent: tuple[int, ...]
) -> None:
    plants = make_plants(4)
    plants.masked(1, plants.prepared(1), plants.words(1))
    request = UnmaskRequest(
        run_id=plants.cohort.run_id, round=1, answered=tuple(f"plant-00{k}" for k in answered),
        absent=tuple(f"plant-00{k}" for k in absent),
    )
    with pytest.raises(MaskingError, match="the plants of round 1 are plant-000, plant-001, plant-002, plant-003; the"):
        plants.members["plant-000"].reveal(request)


def test_a_round_is_answered_once(make_plants: Make) -> None:
    """Other words, or the same over other plants, would show the difference of two sums."""
    plants, name = make_plants(4), "plant-000"
    member, asked = plants.members[name], deliveries(plants.cohort, 1, plants.prepared(1))[name]
    words = np.arange(3, dtype=np.uint64)
    sent = member.mask(asked, words)
    assert member.mask(asked, words) == sent
    fewer = asked.model_copy(update={"sealed": dict(list(asked.sealed.items())[:2])})
    for delivery, other in ((asked, words + np.uint64(1)), (fewer, words)):
        with pytest.raises(MaskingError, match="answered round 1 already, with other words or other plants"):
            member.mask(delivery, other)


def test_rounds_that_are_over_stay_over(make_plants: Make) -> None:
    plants, name = make_plants(3), "plant-000"
    request = None
    for number in (1, 2):
        prepared = plants.prepared(number)
        masked = plants.masked(number, prepared, plants.words(number))
        request = request or unmask_request(plants.cohort, number, prepared, masked)
    with pytest.raises(MaskingError, match="round 1, or the round is over"):
        plants.members[name].reveal(request)
    with pytest.raises(MaskingError, match="round 1 is over for plant-000"):
        plants.members[name].prepare(1)
    plants.prepared(3)
    ahead = UnmaskRequest(run_id=plants.cohort.run_id, round=3, answered=plants.cohort.members, absent=())
    with pytest.raises(MaskingError, match="has not answered round 3, so it reveals nothing"):
        plants.members[name].reveal(ahead)


def test_shares_of_a_wrong_round_or_peer_are_not_opened_and_nothing_of_them_is_revealed(make_plants: Make) -> None:
    plants, name, number = make_plants(4), "plant-000", 0
    words = np.arange(2, dtype=np.uint64)
    wrongs = ("of another round", "of another peer", "its own for that peer", "short", "no element", "three shares")
    for wrong in wrongs:
        number += 2
        prepared = {each: plants.prepared(each) for each in (number, number + 1)}
        key = share_key(plants.members["plant-001"]._secrets[name], number, "plant-001", name)
        sealed = {
            "of another round": prepared[number + 1]["plant-001"].sealed[name],
            "of another peer": prepared[number]["plant-002"].sealed[name],
            "its own for that peer": prepared[number][name].sealed["plant-001"],
            "no element": seal(key, b"\xff" * 68), "three shares": seal(key, bytes(102)),
        }.get(wrong, b"short")
        asked = deliveries(plants.cohort, number, prepared[number])
        asked[name] = asked[name].model_copy(update={"sealed": asked[name].sealed | {"plant-001": sealed}})
        masked = {each: plants.members[each].mask(asked[each], words) for each in asked}
        request = unmask_request(plants.cohort, number, prepared[number], masked)
        told = {each: plants.members[each].reveal(request) for each in request.answered}
        assert told[name].self_shares.keys() == {name, "plant-002", "plant-003"} and not told[name].recovery_shares
        total = unmasked_sum(plants.cohort, request, prepared[number], masked, told)
        np.testing.assert_array_equal(total, 4 * words)


def test_what_is_of_another_run_or_of_a_stranger_is_refused(make_plants: Make) -> None:
    plants, name = make_plants(4), "plant-000"
    asked = deliveries(plants.cohort, 1, plants.prepared(1))[name]
    words = np.zeros(2, dtype=np.uint64)
    with pytest.raises(MaskingError, match="has agreed on no secret with plant-009"):
        plants.members[name].mask(asked.model_copy(update={"sealed": asked.sealed | {"plant-009": b""}}), words)
    with pytest.raises(MaskingError, match="the message is of run cdcd"):
        plants.members[name].mask(asked.model_copy(update={"run_id": "cd" * 16}), words)


def test_a_key_that_no_secret_can_be_agreed_on_with_is_its_plants_alone(make_plants: Make) -> None:
    """Signed by its plant, handed on, it would make each peer refuse the keys of all."""
    plants, name = make_plants(4), "plant-001"
    cohort, public = plants.cohort, bytes(32)
    signature = plants.signers[name](_statement(cohort.fingerprint, name, public))
    low = plants.keys[name].model_copy(update={"public_key": public, "signature": signature})
    with pytest.raises(MaskingError, match=f"mask key of {name} is no point that a secret can be agreed on with"):
        check_mask_key(cohort, name, low)



def test_keys_that_the_site_did_not_sign_are_refused(make_plants: Make) -> None:
    plants, others = make_plants(3), make_plants(3, run_id="cd" * 16)
    wider = make_plants(4, run_id="ef" * 16)
    mine, stranger = "plant-000", MaskKeyPair.new()
    forged = stranger.signed(plants.cohort, "plant-001", others.signers["plant-001"])
    narrower = plants.cohort.model_copy(update={"threshold": 2})
    wrong = {
        "is not signed by the key that the site enrolled": forged,
        "for run cdcd.* is not that of plant-001 for this run": others.keys["plant-001"],
        "the mask key of plant-002 for run": plants.keys["plant-002"],
        "was told of another cohort": stranger.signed(narrower, "plant-001", plants.signers["plant-001"]),
    }
    for text, key in wrong.items():
        with pytest.raises(MaskingError, match=text):
            Member(plants.cohort, mine, plants.pairs[mine], plants.keys | {"plant-001": key})
    with pytest.raises(MaskingError, match="site plant-003 is not in cohort cohort-1"):
        check_mask_key(plants.cohort, "plant-003", wider.keys["plant-003"])
    with pytest.raises(MaskingError, match="site plant-003 is not in cohort cohort-1"):
        Member(plants.cohort, "plant-003", stranger, plants.keys)


def test_a_key_of_no_order_is_refused(make_plants: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    plants, zero = make_plants(3), bytes(32)
    monkeypatch.setattr("services.masking.keys.verify", lambda key, data, signature: True)
    bad = plants.keys["plant-001"].model_copy(update={"public_key": zero})
    with pytest.raises(MaskingError, match="no point that a secret can be agreed on with"):
        agree(plants.cohort, "plant-000", plants.pairs["plant-000"], {"plant-001": bad})


def test_two_plants_agree_on_one_secret_and_no_stream_is_drawn_twice(make_plants: Make) -> None:
    plants = make_plants(4)
    secrets = {name: each._secrets for name, each in plants.members.items()}
    streams = set()
    for name, known in secrets.items():
        for peer, secret in known.items():
            assert secrets[peer][name] == secret and set(known) == set(secrets) - {name}
            streams |= {stream(pair_key(secret, number), 2).tobytes() for number in range(5)}
    assert len(streams) == 6 * 5


def test_what_is_derived_from_a_secret_follows_from_it_alone_and_from_all_of_its_context() -> None:
    context = [(SELF, "ab" * 16, 1, "p"), (RECOVERY, "ab" * 16, 1, "p"), (SELF, "cd" * 16, 1, "p"),
               (SELF, "ab" * 16, 2, "p"), (SELF, "ab" * 16, 1, "q")]
    secrets = [new_secret(), new_secret()]
    for derived in (secret_key, commitment):
        keys = [derived(secret, *each) for secret in secrets for each in context]
        assert len(set(keys)) == 10 and keys == [derived(secret, *each) for secret in secrets for each in context]
    assert not {secret_key(secrets[0], *context[0])} & {commitment(secrets[0], *context[0])}


def test_no_two_contexts_of_a_key_read_alike() -> None:
    """A plant chooses its name, and might choose one that runs into what stands beside it."""
    key, contexts = bytes(32), [("ab", "c"), ("a", "bc"), ("abc",), ("a", "b", "c"), ("ab", "c", ""), (1, 23), (12, 3)]
    assert len({derive(key, "pair of plants", *each) for each in contexts}) == len(contexts)


def test_secrets_are_not_in_the_text_of_a_key(make_plants: Make) -> None:
    pair = MaskKeyPair.new()
    assert repr(pair.private) not in repr(pair) and pair.private.hex() not in repr(pair)
