"""Plans are changed, put away and deleted; every version stays, with who gave it."""

from __future__ import annotations

import pytest

from services.contracts.errors import ConflictError, InvalidInputError, NotFoundError
from services.contracts.machines.asset_type import AssetType
from services.contracts.machines.target import Target
from services.contracts.plans.plan import Plan
from services.round_store.store import RoundStore


@pytest.fixture
def stored(store: RoundStore, plan: Plan, asset_type: AssetType) -> Plan:
    store.asset_types.add(asset_type)
    store.asset_types.add(asset_type.model_copy(update={"name": "fan"}))
    return store.plans.create(plan, actor="ada").plan


def changed(plan: Plan, **changes: object) -> Plan:
    return Plan.model_validate({**plan.model_dump(), **changes})


def test_versions_are_kept_with_who_gave_them(store: RoundStore, stored: Plan) -> None:
    second = store.plans.update(changed(stored, max_rounds=7), actor="bob", reason="too slow")
    assert (second.version, second.plan.max_rounds) == (2, 7)
    assert store.plans.update(second.plan, actor="eve") == second  # the same again
    assert store.plans.get(stored.name) == second
    found = [(each.version, each.plan, each.actor, each.reason) for each in store.plans.versions(stored.name)]
    assert found == [(1, stored, "ada", ""), (2, second.plan, "bob", "too slow")]
    with pytest.raises(NotFoundError):
        store.plans.versions("nobody")
    with pytest.raises(NotFoundError):
        store.plans.update(changed(stored, name="nobody"))
    with pytest.raises(InvalidInputError, match="turbine, which is not there"):
        store.plans.update(changed(stored, asset_type="turbine"))
    assert store.plans.get(stored.name) == second


def test_a_running_run_goes_on_with_the_plan_that_it_began_with(store: RoundStore, stored: Plan) -> None:
    run = store.runs.create_run(stored)
    store.plans.update(changed(stored, max_rounds=7, method="fdr-sm"))
    assert store.runs.get_run(run.run_id).plan == stored


def test_what_a_model_is_of_stays_while_a_run_or_a_version_speaks_of_it(store: RoundStore, stored: Plan) -> None:
    to_fan = changed(stored, asset_type="fan")
    assert store.plans.update(to_fan).plan.asset_type == "fan"
    run = store.runs.create_run(to_fan)
    with pytest.raises(ConflictError, match="from classification of fan into classification of pump while run"):
        store.plans.update(stored)
    with pytest.raises(ConflictError, match="into regression of fan"):
        store.plans.update(changed(to_fan, spec={"loss": {"name": "huber", "epsilon": 0.1}}))
    store.runs.finish_run(run.run_id, "failed", "of the test")
    assert store.plans.update(stored).version == 3
    store.model_versions.add(stored.name, "1", run.run_id, {})
    with pytest.raises(ConflictError, match="model weekly has versions"):
        store.plans.update(to_fan)
    assert store.plans.update(changed(stored, gap=0.5)).version == 4


def test_a_plan_is_put_away_and_brought_back(store: RoundStore, stored: Plan) -> None:
    run = store.runs.create_run(stored)
    with pytest.raises(ConflictError, match=f"unfinished run, {run.run_id}"):
        store.plans.set_archived(stored.name, True)
    store.runs.finish_run(run.run_id, "failed", "of the test")
    put_away = store.plans.set_archived(stored.name, True)
    assert put_away.archived and store.plans.set_archived(stored.name, True) == put_away
    assert (store.plans.list_plans(), store.plans.list_plans(archived=True)) == ([], [put_away])
    with pytest.raises(ConflictError, match="is archived; restore it first"):
        store.plans.update(changed(stored, gap=0.5))
    with pytest.raises(ConflictError, match="already"):
        store.plans.create(stored)
    assert not store.plans.set_archived(stored.name, False).archived
    assert len(store.plans.list_plans()) == 1


def test_only_a_plan_that_was_never_used_is_deleted(store: RoundStore, stored: Plan) -> None:
    run = store.runs.create_run(stored)
    store.runs.finish_run(run.run_id, "failed", "of the test")
    with pytest.raises(ConflictError, match="archive it instead"):
        store.plans.delete(stored.name)
    other = store.plans.create(changed(stored, name="other"))
    store.plans.update(changed(stored, name="other", gap=0.5))
    assert store.plans.delete("other").version == other.version + 1
    with pytest.raises(NotFoundError):
        store.plans.get("other")
    assert store.plans.create(changed(stored, name="other")).version == 1


def test_a_plan_of_before_is_its_first_version(database_url: str, plan: Plan, asset_type: AssetType) -> None:
    from migrations import run as migrations

    plan = plan.model_copy(update={"reveal": "each site"})  # what plans of before are read as
    store = RoundStore.open(database_url)
    store.asset_types.add(asset_type.model_copy(update={"target": Target(name="area", unit="1", low=0.0, high=1.0)}))
    created = store.plans.create(plan, actor="ada")
    store.close()
    assert migrations.downgrade(database_url, "0004") == "0004"
    assert migrations.upgrade(database_url) == migrations.head()
    store = RoundStore.open(database_url)
    assert store.plans.get(plan.name) == created
    assert [(each.version, each.plan, each.actor) for each in store.plans.versions(plan.name)] == [(1, plan, "")]
    store.close()


def test_what_another_plan_has_stands_in_nobodys_way(store: RoundStore, stored: Plan) -> None:
    other = changed(stored, name="other")
    store.plans.create(other)
    store.plans.update(changed(other, max_rounds=7))
    run = store.runs.create_run(other)
    store.model_versions.add("other", "1", run.run_id, {})
    assert store.plans.set_archived(stored.name, True).archived
    assert not store.plans.set_archived(stored.name, False).archived
    assert store.plans.update(changed(stored, asset_type="fan")).version == 2
    store.plans.delete(stored.name)
    assert [each.plan.max_rounds for each in store.plans.versions("other")] == [other.max_rounds, 7]


def test_a_version_has_the_moment_when_it_was_given_and_as_much_of_the_giver_as_there_is_room(
    store: RoundStore, stored: Plan
) -> None:
    second = store.plans.update(changed(stored, max_rounds=7), actor="a" * 500)
    first, last = store.plans.versions(stored.name)
    assert first.created_at == second.created_at < last.created_at == second.updated_at
    assert len(last.actor) == 120
