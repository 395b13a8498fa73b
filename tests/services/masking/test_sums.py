"""The sum is exact for whoever drops out, and nothing comes out below the threshold."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.basics import FloatArray
from models.cohorts.fixed_point import from_words, to_words
from services.contracts.wire.masking import (
    MaskedWords,
    MaskingCohort,
    MaskingError,
    Preparation,
    Revealed,
    UnmaskRequest,
    default_threshold,
    least_threshold,
)
from services.masking.unmasking import UnfitSharesError, deliveries, unmask_request, unmasked_sum

Make = Callable[..., Any]
ROUNDS = itertools.count(1)


@settings(max_examples=60)
@given(st.data())
def test_the_sum_is_exact_for_any_dropouts_down_to_the_threshold(seven: Any, data: st.DataObject) -> None:
    """Whoever never prepared, dropped out before the answer, or after it: the sum is of those that answered."""
    order, number = data.draw(st.permutations(sorted(seven.members))), next(ROUNDS)
    never = set(order[: data.draw(st.integers(0, 2))])
    rest = [name for name in order if name not in never]
    dropped = set(rest[: data.draw(st.integers(0, len(rest) - 5))])
    answered = [name for name in rest if name not in dropped]
    silent = answered[: data.draw(st.integers(0, len(answered) - 5))]
    words = seven.words(number, data.draw(st.integers(0, 9)))
    total = seven.total(number, words, never=never, dropped=dropped, silent=silent)
    np.testing.assert_array_equal(total, np.add.reduce([words[name] for name in answered]))


def test_in_which_order_a_plant_names_its_peers_changes_no_sum(make_plants: Make) -> None:
    """The keys of its pair masks are in the order of the cohort: taken in another they are those of other pairs."""
    plants = make_plants(7)
    gone, words = plants.cohort.members[2], plants.words(1)
    prepared = {
        name: each.model_copy(update={"sealed": dict(reversed(each.sealed.items()))})
        for name, each in plants.prepared(1).items()
    }
    masked = plants.masked(1, prepared, words, [gone])
    request = unmask_request(plants.cohort, 1, prepared, masked)
    revealed = {name: plants.members[name].reveal(request) for name in request.answered}
    total = unmasked_sum(plants.cohort, request, prepared, masked, revealed)
    np.testing.assert_array_equal(total, np.add.reduce([words[name] for name in words if name != gone]))


def test_who_prepared_nothing_for_one_of_the_others_is_named(make_plants: Make) -> None:
    plants = make_plants(4)
    prepared = plants.prepared(1)
    kept = {peer: box for peer, box in prepared["plant-001"].sealed.items() if peer != "plant-003"}
    prepared["plant-001"] = prepared["plant-001"].model_copy(update={"sealed": kept})
    with pytest.raises(MaskingError, match="site plant-001 has no shares for all of plant-000, plant-001, plant-002, "):
        deliveries(plants.cohort, 1, prepared)


def test_what_a_plant_sends_says_nothing_and_is_its_own_each_round(seven: Any) -> None:
    """The same words give other bits in each round, each bit set about as often as not."""
    first, second = next(ROUNDS), next(ROUNDS)
    words = {name: np.zeros(400, dtype=np.uint64) for name in seven.members}
    sent = [seven.masked(number, seven.prepared(number), words) for number in (first, second)]
    name = sorted(words)[3]
    bits = [np.unpackbits(np.frombuffer(each[name].words, dtype=np.uint8)) for each in sent]
    for share in (bits[0].mean(), bits[1].mean(), (bits[0] ^ bits[1]).mean()):
        assert abs(float(share) - 0.5) < 0.02


@pytest.mark.parametrize("count", [3, 4, 6, 9])
def test_two_thirds_absent_are_refused_by_server_and_plants(make_plants: Make, count: int) -> None:
    plants = make_plants(count)
    here = plants.cohort.members[: -(-count // 3)]
    prepared, words = plants.prepared(1), plants.words(1)
    masked = plants.masked(1, prepared, words)
    few = {name: masked[name] for name in here}
    need = plants.cohort.threshold
    with pytest.raises(MaskingError, match=f"{len(here)} of the {need} plants that a sum .* have answered in round 1"):
        unmask_request(plants.cohort, 1, prepared, few)
    forged = UnmaskRequest(
        run_id=plants.cohort.run_id, round=1, answered=here, absent=tuple(sorted(set(prepared) - set(here)))
    )
    with pytest.raises(MaskingError, match=f"{len(here)} of the {need} answers that a sum needs arrived"):
        plants.members[here[0]].reveal(forged)
    with pytest.raises(MaskingError, match=f"of the {need} plants that a sum .* have prepared in round 2"):
        deliveries(plants.cohort, 2, {name: plants.members[name].prepare(2) for name in here})


def test_a_plant_answers_no_round_with_too_few_others(make_plants: Make) -> None:
    plants = make_plants(6)
    asked = deliveries(plants.cohort, 1, plants.prepared(1))["plant-000"]
    fewer = asked.model_copy(update={"sealed": dict(list(asked.sealed.items())[:2])})
    with pytest.raises(MaskingError, match="3 of the 4 plants that a sum needs take part in round 1"):
        plants.members["plant-000"].mask(fewer, np.zeros(2, dtype=np.uint64))


def test_fewer_shares_than_the_threshold_open_nothing(make_plants: Make) -> None:
    plants = make_plants(4)
    with pytest.raises(MaskingError, match="2 of the 3 plants that a sum .* have revealed their shares in round 1"):
        plants.total(1, plants.words(1), silent=["plant-000", "plant-001"])


def test_a_wrong_share_is_noticed(make_plants: Make) -> None:
    """All three are needed, so which of them is wrong cannot be told."""
    plants = make_plants(3)
    prepared, words = plants.prepared(1), plants.words(1)
    masked = plants.masked(1, prepared, words)
    request = unmask_request(plants.cohort, 1, prepared, masked)
    revealed = {name: plants.members[name].reveal(request) for name in request.answered}
    told = revealed["plant-001"]
    wrong = told.self_shares | {"plant-002": told.self_shares["plant-000"]}
    revealed["plant-001"] = told.model_copy(update={"self_shares": wrong})
    with pytest.raises(MaskingError, match="the shares of the self-mask of plant-002 in round 1 do not fit"):
        unmasked_sum(plants.cohort, request, prepared, masked, revealed)


@pytest.mark.parametrize("told", ["of another plant", "no element", "cut", "none"])
@pytest.mark.parametrize(("count", "false"), [(4, 1), (7, 1), (30, 2)])
def test_false_shares_end_no_round_where_enough_are_true(make_plants: Make, count: int, false: int, told: str) -> None:
    """The first plants lie, whose shares are taken first; one plant is absent, so of it another secret is opened."""
    plants = make_plants(count)
    absent = [] if count == 4 else [plants.cohort.members[-1]]
    prepared, words = plants.prepared(1), plants.words(1)
    masked = plants.masked(1, prepared, words, absent=absent)
    request = unmask_request(plants.cohort, 1, prepared, masked)
    revealed = {name: plants.members[name].reveal(request) for name in request.answered}
    for name in request.answered[:false]:
        for kind in ("self_shares", "recovery_shares"):
            true = getattr(revealed[name], kind)
            another = next(iter(true.values()), b"")
            lie = {"of another plant": another, "no element": b"\xff" * 34, "cut": b"x"}.get(told)
            said = {} if lie is None else dict.fromkeys(true, lie)
            revealed[name] = revealed[name].model_copy(update={kind: said})
    total = unmasked_sum(plants.cohort, request, prepared, masked, revealed)
    np.testing.assert_array_equal(total, np.add.reduce([words[name] for name in request.answered]))


def test_a_plant_whose_own_shares_are_false_is_named(make_plants: Make) -> None:
    plants, name = make_plants(5), "plant-003"
    prepared, words = plants.prepared(1), plants.words(1)
    masked = plants.masked(1, prepared, words)
    request = unmask_request(plants.cohort, 1, prepared, masked)
    revealed = {each: plants.members[each].reveal(request) for each in request.answered}
    false = prepared | {name: prepared[name].model_copy(update={"commitments": (bytes(32), bytes(32))})}
    with pytest.raises(UnfitSharesError, match=f"self-mask of {name} in round 1 do not fit") as found:
        unmasked_sum(plants.cohort, request, false, masked, revealed)
    assert found.value.site == name
    few = {each: revealed[each] for each in list(revealed)[: plants.cohort.threshold]}
    with pytest.raises(MaskingError, match="one of them is wrong") as unknown:
        unmasked_sum(plants.cohort, request, false, masked, few)
    assert not isinstance(unknown.value, UnfitSharesError), "a single plant may have told a false one"


def test_messages_of_another_round_run_or_site_are_refused(make_plants: Make) -> None:
    plants, others = make_plants(3, 2), make_plants(3, 2, "cd" * 16)
    prepared, words = plants.prepared(1), plants.words(1)
    masked = plants.masked(1, prepared, words)
    request = unmask_request(plants.cohort, 1, prepared, masked)
    revealed = {name: plants.members[name].reveal(request) for name in request.answered}
    name = "plant-000"
    late = {key: each.model_copy(update={"round": 2}) for key, each in revealed.items()}
    with pytest.raises(MaskingError, match="is of round 2 of run abab.*, not of 1"):
        unmasked_sum(plants.cohort, request, prepared, masked, late)
    with pytest.raises(MaskingError, match="is of round 1 of run cdcd"):
        deliveries(plants.cohort, 1, prepared | {name: others.members[name].prepare(1)})
    with pytest.raises(MaskingError, match="a message of plant-001 stands for plant-000"):
        unmask_request(plants.cohort, 1, prepared, masked | {name: masked["plant-001"]})
    with pytest.raises(MaskingError, match="answered round 1 without having prepared for it"):
        unmask_request(plants.cohort, 1, {key: prepared[key] for key in prepared if key != name}, masked)
    short = masked | {name: masked[name].model_copy(update={"words": masked[name].words[:-8]})}
    with pytest.raises(MaskingError, match="the answers of round 1 differ in length"):
        unmasked_sum(plants.cohort, request, prepared, short, revealed)


def test_every_message_survives_json(make_plants: Make) -> None:
    plants = make_plants(4)
    prepared, words = plants.prepared(1), plants.words(1)
    masked = plants.masked(1, prepared, words, absent=["plant-003"])
    request = unmask_request(plants.cohort, 1, prepared, masked)
    revealed = {name: plants.members[name].reveal(request) for name in request.answered}
    cohort = MaskingCohort.model_validate_json(plants.cohort.model_dump_json())
    assert cohort == plants.cohort and cohort.fingerprint == plants.cohort.fingerprint
    again = [
        {name: type(each).model_validate_json(each.model_dump_json()) for name, each in part.items()}
        for part in (prepared, masked, revealed)
    ]
    assert again == [prepared, masked, revealed]
    total = unmasked_sum(cohort, UnmaskRequest.model_validate_json(request.model_dump_json()), *again)
    np.testing.assert_array_equal(total, np.add.reduce([words[name] for name in masked]))
    assert {type(each) for part in again for each in part.values()} == {Preparation, MaskedWords, Revealed}


def test_masked_answers_are_the_plain_sum_of_the_answers(make_plants: Make) -> None:
    """Through fixed point and masks the sum is that of the numbers, within the rounding of the grid."""
    plants, draw = make_plants(4), np.random.default_rng(3)
    shapes: dict[str, tuple[int, ...]] = {
        "risk": (), "cut_height": (), "slope": (6,), "norm_weight": (), "swing": (5,), "local_point": (6,),
    }
    answers: dict[str, dict[str, FloatArray]] = {
        name: {key: np.abs(draw.normal(size=shape)) for key, shape in shapes.items()} for name in plants.members
    }
    words = {name: to_words(each, 0.25, draw.normal(size=6)) for name, each in answers.items()}
    total = plants.total(1, words)
    np.testing.assert_array_equal(total, np.add.reduce(list(words.values())))
    for key, array in from_words(total, shapes).items():
        np.testing.assert_allclose(array, np.mean([each[key] for each in answers.values()], axis=0), atol=1e-10)


@pytest.mark.parametrize(("count", "least", "default"), [(3, 2, 3), (4, 3, 3), (6, 4, 4), (7, 5, 5), (200, 134, 134)])
def test_at_least_two_thirds_must_answer(make_plants: Make, count: int, least: int, default: int) -> None:
    assert (least_threshold(count), default_threshold(count)) == (least, default)
    keys = {f"p{k}": "U" for k in range(count)}
    for wrong in (least - 1, count + 1):
        with pytest.raises(ValueError, match=f"must be from {least} to {count}, got {wrong}"):
            MaskingCohort(run_id="ab" * 16, name="c", keys=keys, threshold=wrong)
    with pytest.raises(ValueError, match="a cohort has at least 3 plants, c has 2"):
        MaskingCohort(run_id="ab" * 16, name="c", keys={"a": "U", "b": "U"}, threshold=2)
