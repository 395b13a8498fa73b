"""Plans and asset types."""

from __future__ import annotations

import pytest

from services.contracts.errors import ConflictError, InvalidInputError, NotFoundError
from services.contracts.machines.asset_type import AssetType
from services.contracts.plans.plan import Plan
from services.round_store.database.documents import document
from services.round_store.store import RoundStore
from services.round_store.tables.plans import PlanRow


def test_a_plan_is_created_once_and_paused(store: RoundStore, plan: Plan, asset_type: AssetType) -> None:
    store.asset_types.add(asset_type)
    created = store.plans.create(plan)
    assert (created.plan, created.paused) == (plan, False)
    assert store.plans.get(plan.name) == created
    with pytest.raises(ConflictError, match="there is a plan weekly already"):
        store.plans.create(plan)
    paused = store.plans.set_paused(plan.name, True)
    assert paused.paused
    assert paused.updated_at > created.updated_at
    assert store.plans.set_paused(plan.name, True) == paused
    assert store.plans.list_plans() == [paused]


def test_a_run_keeps_the_plan_that_it_began_with(store: RoundStore, plan: Plan, asset_type: AssetType) -> None:
    store.asset_types.add(asset_type)
    store.plans.create(plan)
    run = store.runs.create_run(plan)
    with store.database.write() as session:
        session.get_one(PlanRow, plan.name).document = document(plan.model_copy(update={"max_rounds": 7}))
    assert store.plans.get(plan.name).plan.max_rounds == 7
    assert store.runs.get_run(run.run_id).plan.max_rounds == plan.max_rounds


def test_plans_need_what_they_name(store: RoundStore, plan: Plan) -> None:
    with pytest.raises(InvalidInputError, match="asset type pump, which is not there"):
        store.plans.create(plan)
    with pytest.raises(NotFoundError, match="no plan weekly"):
        store.plans.get("weekly")


def test_asset_types_come_back_and_never_change(store: RoundStore, asset_type: AssetType) -> None:
    added = store.asset_types.add(asset_type)
    assert added.fingerprint == asset_type.fingerprint
    assert store.asset_types.add(asset_type) == added
    assert store.asset_types.get("pump").asset_type == asset_type
    assert store.asset_types.get("pump").asset_type.fingerprint == asset_type.fingerprint
    other = asset_type.model_copy(update={"description": "another"})
    with pytest.raises(ConflictError, match="another content; give it the next version"):
        store.asset_types.add(other)
    third = store.asset_types.add(other.model_copy(update={"version": 3}))
    assert store.asset_types.get("pump") == third
    assert store.asset_types.get("pump", 1) == added
    with pytest.raises(ConflictError, match="at version 3 already; 2 is older"):
        store.asset_types.add(other.model_copy(update={"version": 2}))
    assert store.asset_types.list_asset_types() == [added, third]
    for wanted in (("fan", None), ("pump", 2)):
        with pytest.raises(NotFoundError, match="no asset type"):
            store.asset_types.get(*wanted)
