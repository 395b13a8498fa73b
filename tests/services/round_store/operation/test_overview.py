"""Reads over many runs give what reading them one by one gives."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from services.contracts.history.run import Run, SiteAnswer, SiteTermsRecord
from services.contracts.plans.gates import Gates
from services.contracts.plans.plan import Plan
from services.plant_simulator.assets import builtin_asset_type
from services.round_store.operation.overview import RECENT_ROUNDS
from services.round_store.store import RoundStore
from tests import versions

SITES = ("plant-1", "plant-2")
NUMBERS = itertools.count(1)


@pytest.fixture
def store(database_url: str) -> Iterator[RoundStore]:
    opened = RoundStore.open(database_url)
    opened.asset_types.add(builtin_asset_type("triplex-pump"))
    for name in ("one", "two"):
        opened.plans.create(Plan(name=name, asset_type="triplex-pump", gates=Gates(max_gap=None)))
    yield opened
    opened.close()


def a_run(store: RoundStore, plan: str, rounds: int, *, missed: frozenset[int] = frozenset()) -> Run:
    """A finished run in which the second site missed some rounds; a later one has a later id."""
    run = store.runs.create_run(store.plans.get(plan).plan, f"{next(NUMBERS):032x}")
    store.runs.begin_run(run.run_id, [SiteTermsRecord(site_id=s, weight=0.5, radius=0.1, n_samples=9) for s in SITES])
    for number in range(1, rounds + 1):
        late = SiteAnswer(site_id=SITES[1], status="late", code="deadline", reason="too late")
        answers = (versions.an_answer(SITES[0]), late if number in missed else versions.an_answer(SITES[1]))
        store.runs.commit_round(versions.a_round(run.run_id, number, *answers), {"weights": np.zeros(1)})
    return store.runs.finish_run(run.run_id, "completed", "done")


def test_the_newest_run_of_each_plan(store: RoundStore) -> None:
    a_run(store, "one", 1)
    expected = {"one": a_run(store, "one", 2).run_id, "two": a_run(store, "two", 1).run_id}
    found = store.overview.newest_runs()
    assert {run.plan.name: run.run_id for run in found} == expected
    assert [run.plan.name for run in found] == ["two", "one"]


def test_the_newest_run_of_each_plan_that_committed_a_round(store: RoundStore) -> None:
    before = a_run(store, "one", 2)
    begun = store.runs.create_run(store.plans.get("one").plan)
    assert [run.run_id for run in store.overview.newest_runs()] == [begun.run_id]
    assert [run.run_id for run in store.overview.newest_runs(with_rounds=True)] == [before.run_id]
    store.runs.finish_run(begun.run_id, "failed", "too few plants")
    assert [run.run_id for run in store.overview.newest_runs(with_rounds=True)] == [before.run_id]


def test_when_each_site_last_answered(store: RoundStore) -> None:
    last = RECENT_ROUNDS + 3
    run = a_run(store, "one", last, missed=frozenset({last, last - 1}))
    found = store.overview.last_answers([run])
    assert set(found) == set(SITES) and found[SITES[1]] < found[SITES[0]]
    silent = a_run(store, "two", last, missed=frozenset(range(3, last + 1)))
    assert set(store.overview.last_answers([silent])) == {SITES[0]}, "no further back than the recent rounds"
    assert store.overview.last_answers([]) == {}


def test_when_sites_last_answered_is_asked_of_as_many_plans_as_there_are(store: RoundStore) -> None:
    """Archived ones among them: more runs than SQLite takes conditions."""
    early, late = a_run(store, "one", 2), a_run(store, "two", 3, missed=frozenset({1, 2, 3}))
    others = [early.model_copy(update={"run_id": f"{2**127 + number:032x}"}) for number in range(1100)]
    for runs in ([early, *others, late], [late, *others, early]):
        found = store.overview.last_answers(runs)
        assert found == {
            SITES[0]: store.overview.last_answers([late])[SITES[0]],
            SITES[1]: store.overview.last_answers([early])[SITES[1]],
        }


def test_a_sites_part_in_a_run(store: RoundStore) -> None:
    run = a_run(store, "one", 5, missed=frozenset({2, 5}))
    rounds = store.runs.get_rounds(run.run_id)
    for total in store.overview.totals(run.run_id):
        mine = [answer for record in rounds for answer in record.answers if answer.site_id == total.site_id]
        held = [answer for answer in mine if answer.status == "accepted"]
        assert (total.accepted, total.missed) == (len(held), len(mine) - len(held))
        assert total.bytes_to_site == sum(answer.bytes_out for answer in mine)
        assert total.bytes_from_site == sum(answer.bytes_in for answer in mine)
        assert total.seconds == pytest.approx(sum(answer.seconds for answer in mine))
    assert [total.last_accepted_round for total in store.overview.totals(run.run_id)] == [5, 4]
    assert [(each.round, each.site_id) for each in store.overview.missed(run.run_id)] == [(5, SITES[1]), (2, SITES[1])]
    assert [each.status for each in store.overview.answers(run.run_id, 5)] == ["accepted", "late"]
    assert [point.round for point in store.overview.points(run.run_id, after=3)] == [4, 5]
    assert store.overview.points(run.run_id)[1].upper == rounds[1].upper


def test_who_is_still_at_work_has_missed_nothing(store: RoundStore) -> None:
    run = store.runs.create_run(store.plans.get("one").plan)
    store.runs.begin_run(run.run_id, [])
    answers = (versions.an_answer(SITES[0]), versions.an_answer(SITES[1], status="open"))
    store.runs.commit_round(versions.a_round(run.run_id, 1, *answers), {"weights": np.zeros(1)})
    assert [(each.accepted, each.missed) for each in store.overview.totals(run.run_id)] == [(1, 0), (0, 0)]
    assert store.overview.missed(run.run_id) == []
    assert [each.status for each in store.overview.answers(run.run_id, 1)] == ["accepted", "open"]


def test_no_more_is_read_than_was_asked_for(store: RoundStore) -> None:
    last = RECENT_ROUNDS + 1
    run = a_run(store, "one", last, missed=frozenset(range(2, last + 1)))
    assert set(store.overview.last_answers([run])) == {SITES[0]}, "the first round is one too far back"
    assert [point.round for point in store.overview.points(run.run_id, after=1, limit=2)] == [2, 3]
    assert [each.round for each in store.overview.missed(run.run_id, limit=2)] == [last, last - 1]
    assert store.overview.run_totals() == {"completed": (1, last)}


def test_where_aliases_point_and_what_is_newest(store: RoundStore) -> None:
    run = a_run(store, "one", 1)
    for number in ("1", "2"):
        store.model_versions.add("one", number, run.run_id, {})
    store.model_versions.record_alias("one", "champion", "1", "ada", "first")
    store.model_versions.record_alias("one", "champion", "2", "ada", "second")
    store.model_versions.record_alias("one", "challenger", "1", "ada", "third")
    found = {key: change.version for key, change in store.overview.aliases().items()}
    assert found == {("one", "champion"): "2", ("one", "challenger"): "1"}
    assert {name: record.version for name, record in store.overview.newest_versions().items()} == {"one": "2"}
