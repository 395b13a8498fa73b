"""Runs on sums, on ports that are none but with real masks: what is seen, who may be away, and what then comes out."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from models.simulation.federation import train
from services.contracts.errors import InvalidInputError
from services.contracts.wire.codec import decode
from services.contracts.wire.masking import MaskingCohort, Preparation, Revealed, Unmasked, Unmasking
from services.contracts.wire.messages import SiteUpdate, Task
from services.coordinator.asking.ports import RawAnswer
from services.coordinator.round_loop import summed_rounds
from services.coordinator.run_state.run_errors import ContradictingAnswersError, TooFewSitesError
from services.coordinator.run_state.terms import cohorts_of
from services.site_agent.answers.local_solve import site_problems
from services.site_agent.rules.policy import Refusal
from tests.services.coordinator.fake_ports import RIG, FakePlant, FakeWorks


@pytest.fixture
def works(works: FakeWorks, monkeypatch: pytest.MonkeyPatch) -> FakeWorks:
    monkeypatch.setattr(summed_rounds, "RETRY_SECONDS", 0.0)
    return works


def on_sums(works: FakeWorks, **changes: Any) -> Any:
    return works.run(**{"reveal": "sums", "method": "cohort-bundle", "parameters": {"questions": 2}} | changes)


def away(site: str, *kinds: str, rounds: range) -> Callable[[Task], RawAnswer | None]:
    def behave(task: Task) -> RawAnswer | None:
        return RawAnswer(site, None, "absent", 0.1) if task.kind in kinds and task.round in rounds else None

    return behave


def once(behave: Callable[[Task], RawAnswer | None]) -> Callable[[Task], RawAnswer | None]:
    left = [behave]

    def first_only(task: Task) -> RawAnswer | None:
        said = left[0](task) if left else None
        if said is not None:
            left.clear()
        return said

    return first_only


def statuses(works: FakeWorks, site: str) -> list[str]:
    return [each.status for record in works.store.records for each in record.answers if each.site_id == site]


def masks_falsely(plant: FakePlant, change: Callable[[Any], Any]) -> None:
    """The plant says what ``change`` makes of its half of the masks."""
    honest = plant.masked

    def masked(task: Task) -> Any:
        return change(honest(task))

    plant.masked = masked  # type: ignore[method-assign]


def shares(change: Callable[[Revealed], dict[str, Any]]) -> Callable[[Any], Any]:
    """What a plant reveals, changed."""
    def false(said: Any) -> Any:
        if not isinstance(said, Unmasked):
            return said
        return said.model_copy(update={"revealed": said.revealed.model_copy(update=change(said.revealed))})

    return false


FALSE_SHARES = {
    "of nothing": shares(lambda told: {"self_shares": dict.fromkeys(told.self_shares, bytes(34))}),
    "that are none": shares(lambda told: {"self_shares": dict.fromkeys(told.self_shares, b"x")}),
    "of another round": shares(lambda told: {"round": told.round + 1}),
}


@pytest.mark.parametrize("how", FALSE_SHARES)
def test_false_shares_of_one_plant_cost_no_sum(works: FakeWorks, how: str) -> None:
    """It stands first in the cohort, whose shares are the first to be taken."""
    masks_falsely(works.plants["plant-1"], FALSE_SHARES[how])
    run = on_sums(works)
    trained = works.train(run)
    assert trained.certificate.gap <= 1e-3 and works.store.get_run(run.run_id).excluded == ()


def test_a_plant_that_deals_false_shares_is_left_out_and_the_run_goes_on(works: FakeWorks) -> None:
    def falsely(said: Any) -> Any:
        false = {"commitments": (bytes(32), bytes(32))}
        return said.model_copy(update=false) if isinstance(said, Preparation) else said

    masks_falsely(works.plants["plant-4"], falsely)
    run = on_sums(works, min_sites=3)
    trained = works.train(run)
    (left_out,) = works.store.get_run(run.run_id).excluded
    assert (left_out.site_id, left_out.code) == ("plant-4", "false_shares") and "do not fit" in left_out.reason
    assert trained.certificate.gap <= 1e-3 and set(trained.worst_weights) == {"plant-1", "plant-2", "plant-3"}


@pytest.mark.parametrize("how", ["late", "refused", "unsigned"])
def test_a_plant_that_makes_masks_and_answers_no_round_is_left_out(works: FakeWorks, how: str) -> None:
    """Otherwise no sum is whole, so nothing bounds from above, and all others answer to the last round in vain."""
    plant = works.plants["plant-4"]

    def behave(task: Task) -> Any:
        if task.kind != "round" or task.round == 3:  # one answer in between begins the count anew
            return None
        if how == "late":
            return RawAnswer("plant-4", None, "late", 0.0)
        return plant.refusal_of(task, "bad_data") if how == "refused" else plant.update(plant.frame, task)[:-1] + b"x"

    plant.behave = behave
    run = on_sums(works, min_sites=3, absence_patience_seconds=3600.0)
    trained = works.train(run)
    (left_out,) = works.store.get_run(run.run_id).excluded
    assert left_out.site_id == "plant-4" and "made masks for 5 rounds" in left_out.reason and left_out.round == 9
    assert statuses(works, "plant-4")[2] == "accepted"
    assert trained.certificate.gap <= 1e-3 and trained.rounds < 30


def test_a_run_on_sums_is_the_run_of_the_same_plants_in_one_process(works: FakeWorks) -> None:
    run = on_sums(works)
    trained = works.train(run)
    spec = run.plan.spec
    sites = {site: site_problems(spec, each.features, each.classes, RIG)[0] for site, each in works.plants.items()}
    begun = works.store.get_run(run.run_id)
    alone = train(
        sites, method="cohort-bundle", parameters={"questions": 2}, gap=1e-3, cohorts=cohorts_of(begun),
        site_half=None,
    )
    assert trained.certificate.gap <= 1e-3
    assert trained.certificate.upper == pytest.approx(alone.certificate.upper, rel=2e-3)
    assert abs(trained.rounds - alone.n_rounds) <= 3, "the plants' own centres are made in both"
    assert begun.excluded == () and set(statuses(works, "plant-1")) == {"accepted"}


def test_the_coordinator_sees_no_answer_of_a_plant(works: FakeWorks) -> None:
    frames: list[bytes] = []

    def listen(plant: FakePlant) -> None:
        answer = plant.answer

        def heard(frame: bytes) -> RawAnswer:
            said = answer(frame)
            frames.append(said.frame or b"")
            return said

        plant.answer = heard  # type: ignore[method-assign]

    for plant in works.plants.values():
        listen(plant)
    works.train(on_sums(works, max_rounds=3))
    said = [decode(frame, 1 << 20) for frame in frames]
    masked = [each for each in said if isinstance(each, SiteUpdate) and each.kind != "join"]
    assert len(masked) > 24 and all(not each.arrays and each.masking is not None for each in masked)
    words = [
        np.frombuffer(each.masking.words, dtype="<u8") for each in masked if hasattr(each.masking, "words")
    ]
    high = np.concatenate(words) >> np.uint64(44)
    assert np.unique(high).size > 0.99 * min(high.size, 2**20) - high.size / 100, "masked words look like any others"


def test_who_drops_out_after_the_masks_are_made_is_missing_from_the_sum_alone(works: FakeWorks) -> None:
    works.plants["plant-2"].behave = away("plant-2", "round", rounds=range(2, 4))
    trained = works.train(on_sums(works))
    assert trained.certificate.gap <= 1e-3 and trained.certificate.fresh_weight == 1.0
    assert statuses(works, "plant-2")[:4] == ["accepted", "absent", "absent", "accepted"]
    assert works.store.records[1].fresh_weight == 0.0, "a part of a cohort bounds from below alone"
    assert all(record.upper >= trained.certificate.upper - 1e-12 for record in works.store.records)


def test_who_answers_and_does_not_unmask_is_in_the_sum(works: FakeWorks) -> None:
    works.plants["plant-3"].behave = away("plant-3", "unmask", rounds=range(1, 3))
    trained = works.train(on_sums(works))
    assert trained.certificate.gap <= 1e-3
    assert set(statuses(works, "plant-3")) == {"accepted"}
    assert all(record.fresh_weight == 1.0 for record in works.store.records)


def test_two_thirds_away_give_no_sum_at_all(works: FakeWorks) -> None:
    for site in ("plant-2", "plant-3"):
        works.plants[site].behave = away(site, "round", rounds=range(2, 100))
    run = on_sums(works)
    with pytest.raises(TooFewSitesError, match=r"no cohort had the answers .* in round 2 .*plant-2, plant-3: nobody"):
        works.train(run)
    assert len(works.store.records) == 1


def refusing(plant: FakePlant, kind: str, number: int = 1) -> None:
    """Have a plant refuse a round, or what comes before it, for good."""
    plant.behave = lambda task: (
        plant.refusal_of(task, "exposure_limit") if task.kind == kind and task.round == number else None
    )


def test_nobody_is_asked_again_where_a_refusal_for_good_leaves_no_sum(works: FakeWorks) -> None:
    three = FakeWorks({site: plant for site, plant in works.plants.items() if site != "plant-4"})
    refusing(three.plants["plant-2"], "round")
    with pytest.raises(TooFewSitesError, match=r"in round 1 and none will \(plant-2: with this answer .* isolate"):
        three.train(on_sums(three, absence_patience_seconds=2.0))
    for plant in three.plants.values():
        assert [task.kind for task in plant.asked].count("round") == 1, "no answer more is spent"


def test_a_refusal_for_good_waits_for_who_may_come_back(works: FakeWorks) -> None:
    refusing(works.plants["plant-2"], "round", 2)
    works.plants["plant-3"].behave = once(away("plant-3", "round", rounds=range(2, 3)))
    trained = works.train(on_sums(works, absence_patience_seconds=60.0))
    assert trained.certificate.gap <= 1e-3 and statuses(works, "plant-2")[1] == "refused_by_site"


def test_a_plant_that_refuses_to_make_masks_is_left_out_at_once(works: FakeWorks) -> None:
    refusing(works.plants["plant-2"], "agree")
    works.train(on_sums(works, absence_patience_seconds=2.0, max_rounds=2))
    (left,) = works.store.get_run(next(iter(works.store.runs))).excluded
    assert (left.site_id, left.code) == ("plant-2", "exposure_limit") and "waits" not in left.reason
    assert [task.kind for task in works.plants["plant-2"].asked].count("agree") == 1


def test_a_plant_that_stays_away_is_left_out_and_the_model_is_that_of_the_others(works: FakeWorks) -> None:
    works.plants["plant-4"].behave = away("plant-4", "agree", "prepare", "round", "unmask", rounds=range(3, 1000))
    run = on_sums(works)
    trained = works.train(run)
    after = works.store.get_run(run.run_id)
    assert [each.site_id for each in after.excluded] == ["plant-4"] and after.excluded[0].code == "absent"
    assert "waits for no plant longer" in after.excluded[0].reason
    others = FakeWorks({site: plant for site, plant in works.plants.items() if site != "plant-4"})
    alone = others.train(on_sums(others))
    assert trained.certificate.gap <= 1e-3
    assert trained.certificate.upper == pytest.approx(alone.certificate.upper, rel=2e-3)


def test_what_a_cohort_said_with_a_plant_that_left_bounds_nothing(works: FakeWorks) -> None:
    unlike = works.plants["plant-4"]
    unlike.classes = 1 - unlike.classes
    unlike.behave = away("plant-4", "agree", "prepare", "round", "unmask", rounds=range(4, 1000))
    trained = works.train(on_sums(works))
    assert [each.site_id for each in works.store.get_run(next(iter(works.store.runs))).excluded] == ["plant-4"]
    others = FakeWorks({site: plant for site, plant in works.plants.items() if site != "plant-4"})
    alone = others.train(on_sums(others))
    assert trained.certificate.gap <= 1e-3
    assert trained.certificate.lower <= alone.certificate.upper, "a cut of the risk of four bounds not that of three"
    assert alone.certificate.lower <= trained.certificate.upper


def test_a_round_that_was_lost_is_asked_again_under_new_keys(works: FakeWorks) -> None:
    for site in ("plant-2", "plant-3"):
        works.plants[site].behave = once(away(site, "round", rounds=range(3, 4)))
    trained = works.train(on_sums(works, absence_patience_seconds=60.0))
    assert trained.certificate.gap <= 1e-3 and works.store.get_run(next(iter(works.store.runs))).excluded == ()
    asked = works.plants["plant-1"].asked
    agreed = [(each.round, each.masking.agreement) for each in asked if isinstance(each.masking, MaskingCohort)]
    assert [number for number, _ in agreed] == [1, 3] and len(set(agreed)) == 2, "anew for the lost round"
    assert [each.round for each in asked if each.kind == "round"].count(3) == 2


def test_a_plant_that_restarts_agrees_on_keys_anew_and_stays(works: FakeWorks) -> None:
    plant = works.plants["plant-1"]

    def restart(task: Task) -> None:
        if task.kind == "round" and task.round == 4 and not isinstance(task.masking, type(None)):
            plant.behave = lambda task: None
            plant.restart()

    plant.behave = restart
    trained = works.train(on_sums(works))
    assert trained.certificate.gap <= 1e-3
    assert statuses(works, "plant-1")[3] == "refused_by_site" and statuses(works, "plant-1")[4] == "accepted"
    assert works.store.get_run(next(iter(works.store.runs))).excluded == ()


def test_a_resumed_run_agrees_on_keys_anew_and_comes_to_the_same_model(works: FakeWorks, tmp_path: Any) -> None:
    run = on_sums(works)
    works.store.lose_after = 5
    with pytest.raises(KeyboardInterrupt):
        works.train(run)
    works.store.lose_after = None
    resumed = asyncio.run(works.coordinator().train(works.store.get_run(run.run_id)))
    again = FakeWorks({site: plant for site, plant in works.plants.items()})
    undisturbed = asyncio.run(_same_run(again, run))
    assert resumed.rounds == undisturbed.rounds
    np.testing.assert_allclose(resumed.weights, undisturbed.weights, rtol=0, atol=1e-9)


async def _same_run(works: FakeWorks, run: Any) -> Any:
    works.store.runs[run.run_id] = run
    coordinator = works.coordinator()
    return await coordinator.train(await coordinator.join(run))


def test_plants_that_keep_their_scores_are_in_the_cohorts_alone(works: FakeWorks) -> None:
    run = on_sums(works)
    trained = works.train(run)
    withheld = works.plants["plant-2"]
    withheld.behave = lambda task: (
        withheld.refusal_of(task, "mode_not_allowed") if task.kind == "evaluate" and task.masking is None else None
    )
    found = asyncio.run(works.coordinator().evaluate(works.store.get_run(run.run_id), trained.weights, math.inf))
    withheld.behave = lambda task: None
    told = asyncio.run(works.coordinator().evaluate(works.store.get_run(run.run_id), trained.weights, math.inf))
    assert "plant-2" not in found.confusion and set(found.confusion) == set(works.plants) - {"plant-2"}
    np.testing.assert_array_equal(found.all_confusion, sum(told.confusion.values()))
    assert found.worst_case_risk == pytest.approx(told.worst_case_risk, abs=1e-11)
    assert found.worst_case_risk >= told.worst_case_risk - 1e-15, "a risk on sums is rounded up"


def test_fewer_plants_than_a_cohort_are_refused_before_anything_is_asked(works: FakeWorks) -> None:
    two = FakeWorks({site: works.plants[site] for site in ("plant-1", "plant-2")})
    with pytest.raises(InvalidInputError, match=r'2 sites take part, .* fewer than 3 .*reveal = "each site"'):
        two.train(on_sums(two))
    assert two.plants["plant-1"].asked == []


def test_methods_that_need_single_answers_say_so(works: FakeWorks) -> None:
    for changes, wanted in (
        ({"method": "drfl-admm", "parameters": {}}, "method drfl-admm needs the answer of each plant"),
        ({"mixture": {"radius": 0.1}}, "a ball over the plants"),
    ):
        with pytest.raises(InvalidInputError, match=wanted):
            works.train(on_sums(works, **changes))


def test_a_lie_that_shows_in_a_sum_ends_the_run_with_the_plants_named(works: FakeWorks) -> None:
    def low(task: Task, arrays: dict[str, Any]) -> dict[str, Any]:
        return arrays | {"risk": 0.2 * arrays["risk"]} if task.kind == "round" and task.round > 6 else arrays

    works.plants["plant-3"].falsify = low
    with pytest.raises(ContradictingAnswersError, match=r"some plant of plant-1, plant-2, plant-3, plant-4 lied"):
        works.train(on_sums(works, gap=1e-6))


@pytest.mark.parametrize("shares", [(0.9995, 0.0002, 0.0002, 0.0001), (0.5, 0.4998, 0.0001, 0.0001)])
def test_a_plant_refuses_shares_that_would_show_it(works: FakeWorks, shares: tuple[float, ...]) -> None:
    plant = works.plants["plant-1"]
    cohort = MaskingCohort(
        run_id="a" * 32, name="cohort-1", keys={site: each.public_key for site, each in works.plants.items()},
        threshold=3, shares=dict(zip(works.plants, shares, strict=True)),
    )
    with pytest.raises(Refusal, match=r"have a share of 0.0\d+ or more"):
        plant.masks.answer(cohort)


def test_every_plant_is_told_the_same_shares_and_they_are_its_weight(works: FakeWorks) -> None:
    weights = {"plant-1": 0.4, "plant-2": 0.3, "plant-3": 0.2, "plant-4": 0.1}
    works.train(on_sums(works, site_settings={site: {"weight": each} for site, each in weights.items()}, max_rounds=1))
    told = [
        task.masking for plant in works.plants.values() for task in plant.asked
        if isinstance(task.masking, MaskingCohort)
    ]
    assert len(told) == 4 and all(each == told[0] for each in told)
    assert told[0].shares == pytest.approx(weights) and told[0].threshold == 3
    requests = [
        task.masking.request for plant in works.plants.values() for task in plant.asked
        if isinstance(task.masking, Unmasking)
    ]
    assert requests and all(each == requests[0] and each.absent == () for each in requests)
