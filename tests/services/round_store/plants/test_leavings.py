"""A plant that left is forgotten wherever it is named, and what only reads like its name stays as it is."""

from __future__ import annotations

import pytest

from services.contracts.history.run import Leaving, Run, SiteTermsRecord
from services.contracts.machines.asset_type import AssetType
from services.contracts.plans.plan import Plan
from services.round_store.operation.events import note
from services.round_store.plants.renaming import Renaming
from services.round_store.store import RoundStore

PLAN = "weekly"
NAMES = ("l2", "radius", "level-bundle", "sites", "pump", PLAN, "plant-7")
"""Plants that are called as a norm, a field, a method, an asset type or the plan itself, and a usual one."""


def plan_of(site: str) -> Plan:
    """A plan that names the plant wherever a plan may."""
    return Plan.model_validate({
        "name": PLAN, "asset_type": "pump", "reveal": "each site", "sites": (site, "b", "c"),
        "site_settings": {site: {"label_flip_cost": 2.0}}, "waiting": {"sites": {site: 30.0}},
    })


def left(store: RoundStore, asset_type: AssetType, site: str) -> tuple[Run, Run, Run]:
    """A run with the plant, one that failed before it began, and one without it; all ended."""
    store.asset_types.add(asset_type)
    plan = store.plans.create(plan_of(site)).plan
    trained = store.runs.create_run(plan)
    terms = [SiteTermsRecord(site_id=each, weight=1 / 3, radius=0.0, n_samples=9) for each in plan.sites]
    store.runs.begin_run(trained.run_id, terms)
    store.runs.finish_run(trained.run_id, "completed", f"site {site} answered last")
    failed = store.runs.create_run(plan)
    store.runs.finish_run(failed.run_id, "failed", f"waits for site {site}, which is not connected")
    fewer = Plan.model_validate({"name": PLAN, "asset_type": "pump", "reveal": "each site", "sites": ("b", "c")})
    store.plans.update(fewer, reason="a plant left")
    without = store.runs.create_run(fewer, leaving=Leaving(site_id=site))
    return trained, failed, store.runs.finish_run(without.run_id, "completed", "done")


@pytest.mark.parametrize("site", NAMES)
def test_only_where_it_is_named(store: RoundStore, asset_type: AssetType, site: str) -> None:
    runs = left(store, asset_type, site)
    assert store.leavings.forget(PLAN, site).pseudonymised["runs"] == 3
    trained, failed, without = (store.runs.get_run(run.run_id) for run in runs)
    gone = trained.plan.sites[0]
    assert gone.startswith("left-")
    assert trained.plan == failed.plan == plan_of(gone)
    assert trained.sites[0].site_id == gone == without.leaving.site_id and without.leaving.done
    assert trained.reason == f"site {gone} answered last"
    assert failed.reason == f"waits for site {gone}, which is not connected"
    kept = store.plans.get(PLAN)
    assert kept.plan.sites == ("b", "c") and plan_of(gone) in [each.plan for each in store.plans.versions(PLAN)]
    assert not store.leavings.forget(PLAN, site).pseudonymised


def test_its_events_go_and_those_of_others_name_it_no_more_and_both_are_counted(
    store: RoundStore, asset_type: AssetType
) -> None:
    left(store, asset_type, "plant-7")
    run_id, last = "a" * 32, store.events.after(0)[-1].number
    with store.database.write() as session:
        for site, reason in (("plant-7", "alike"), ("b", "as plant-7 tells"), ("c", "as plant-70 tells")):
            note(session, "site.convicted", plan=PLAN, run_id=run_id, site_id=site, code="copied", reason=reason)
    before = {event.number: event.model_dump_json() for event in store.events.after(0)}
    forgotten = store.leavings.forget(PLAN, "plant-7")
    after = {event.number: event for event in store.events.after(0)}
    gone = before.keys() - after.keys()
    changed = {number for number in after if after[number].model_dump_json() != before[number]}
    assert last + 1 in gone and last + 2 in changed and last + 3 not in changed
    assert (forgotten.deleted["events"], forgotten.pseudonymised["events"]) == (len(gone), len(changed))
    assert "as left-" in (after[last + 2].reason or "") and after[last + 3].reason == "as plant-70 tells"


def test_a_plant_that_is_back_stays_enrolled_and_its_new_run_as_it_is(store: RoundStore, asset_type: AssetType) -> None:
    left(store, asset_type, "plant-7")
    store.sites.enrol("plant-7", "UPLANT", ["pump"])
    back = store.runs.create_run(plan_of("plant-7"))
    terms = [SiteTermsRecord(site_id=each, weight=1 / 3, radius=0.0, n_samples=9) for each in back.plan.sites]
    back = store.runs.begin_run(back.run_id, terms)
    store.leavings.forget(PLAN, "plant-7")
    assert store.sites.get("plant-7").public_key == "UPLANT"
    assert store.runs.get_run(back.run_id) == back


def test_names_in_sentences_are_whole_words() -> None:
    renamed = Renaming("plant-1", "left-0")
    said = "plant-1, plant-10, big-plant-1 and plant-1-b; site plant-1."
    assert renamed.sentence(said) == "left-0, plant-10, big-plant-1 and plant-1-b; site left-0."
    assert renamed.stands_in("to plant-1") and not renamed.stands_in("to plant-10")


def test_a_name_is_found_at_every_depth_and_only_where_plants_are_named() -> None:
    told = {"site_id": "radius", "reason": "radius left", "radius": "radius"}
    found = Renaming("radius", "site-1").document({
        "sites": {"radius": told, "other": told}, "site_settings": {"radius": {"radius": 0.1}},
        "rounds": [{"sites": ["radius", "other", told]}], "plan": "radius",
    })
    renamed = {"site_id": "site-1", "reason": "site-1 left", "radius": "radius"}
    assert found == {
        "sites": {"site-1": renamed, "other": renamed}, "site_settings": {"site-1": {"radius": 0.1}},
        "rounds": [{"sites": ["site-1", "other", renamed]}], "plan": "radius",
    }
