"""Whom a flow may ask, by which keys, and what it lets go of at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from flows.wiring import FlowContext, open_context
from services.contracts.errors import InvalidInputError
from services.contracts.history.run import Leaving, SiteTermsRecord
from services.contracts.keys.signing import new_seed_file
from services.contracts.plans.plan import Plan
from services.plant_simulator.assets import builtin_asset_type
from services.process.settings import Settings

PUMP, GAUGE = "triplex-pump", "triplex-pump-severity"
KINDS = {"plant-1": [PUMP], "plant-2": [PUMP, GAUGE], "plant-3": [GAUGE], "plant-4": [PUMP]}


@pytest.fixture
def settings(tmp_path: Path, new_sqlite: Callable[[], str]) -> Settings:
    return Settings.load(tmp_path, {"BALLAST_DATABASE_URL": new_sqlite()})


@pytest.fixture
def context(settings: Settings, tmp_path: Path) -> Iterator[FlowContext]:
    """Four plants of two kinds of machine, of which the last is suspended."""
    with open_context(settings) as opened:
        for kind in (PUMP, GAUGE):
            opened.store.asset_types.add(builtin_asset_type(kind))
        for site, kinds in KINDS.items():
            opened.store.sites.enrol(site, new_seed_file(tmp_path / f"{site}.nk"), kinds)
        opened.store.sites.suspend("plant-4")
        yield opened


def key_of(context: FlowContext, site: str) -> str:
    return context.store.sites.get(site).public_key


def terms_of(site: str) -> SiteTermsRecord:
    return SiteTermsRecord(site_id=site, weight=0.5, radius=0.1, n_samples=9)


def a_plan(**changes: Any) -> Plan:
    return Plan.model_validate({"name": "nightly", "asset_type": PUMP, "min_sites": 1, **changes})


def test_a_plan_asks_the_active_plants_that_have_its_machines(context: FlowContext) -> None:
    assert context.site_keys(a_plan()) == {site: key_of(context, site) for site in ("plant-1", "plant-2")}
    gauges = a_plan(asset_type=GAUGE, spec={"loss": "huber"})
    assert context.site_keys(gauges).keys() == {"plant-2", "plant-3"}
    assert context.active_keys().keys() == {"plant-1", "plant-2", "plant-3"}


def test_a_plan_that_names_plants_asks_these_alone_and_each_must_be_active(context: FlowContext) -> None:
    named = {"reveal": "each site", "sites": ("plant-1",)}
    assert context.site_keys(a_plan(**named)).keys() == {"plant-1"}
    gone = a_plan(**named | {"sites": ("plant-1", "plant-4", "nobody")})
    with pytest.raises(InvalidInputError, match="not enrolled and active: nobody, plant-4") as refused:
        context.site_keys(gone)
    assert refused.value.code == "unknown_site"


def test_the_key_before_holds_beside_the_new_one_until_its_end(context: FlowContext, tmp_path: Path) -> None:
    before, now = key_of(context, "plant-1"), datetime.now(UTC)
    new = new_seed_file(tmp_path / "new.nk")
    context.store.sites.rotate_key("plant-1", new, now + timedelta(hours=1))
    assert context.site_keys(a_plan())["plant-1"] == f"{new} {before}"
    newest = new_seed_file(tmp_path / "newest.nk")
    context.store.sites.rotate_key("plant-1", newest, now)
    assert context.site_keys(a_plan())["plant-1"] == newest


def test_a_run_without_a_plant_that_left_asks_the_others_by_the_keys_that_they_have_then(context: FlowContext) -> None:
    context.store.plans.create(a_plan())
    run = context.store.runs.create_run(a_plan()).model_copy(update={"leaving": Leaving(site_id="plant-2")})
    transport: Any = None
    keys = context.coordinator(run, transport)._parts.keys
    context.store.sites.suspend("plant-1")  # before the keys are read for the first time
    assert dict(keys) == {"plant-1": ""}
    assert context.coordinator(run.model_copy(update={"leaving": None}), transport)._parts.keys.keys() == {"plant-2"}


@pytest.mark.parametrize(("reveal", "asked"), [("each site", {"plant-1", "plant-4"}), ("sums", {"plant-1"})])
def test_a_run_that_has_begun_goes_on_in_another_process_where_a_plant_was_suspended(
    context: FlowContext, reveal: str, asked: set[str]
) -> None:
    """It is asked again by single answers once it is active; a plan's new run is refused while it is not."""
    context.store.sites.reactivate("plant-4")
    plan = context.store.plans.create(a_plan(reveal=reveal, sites=("plant-1", "plant-4"))).plan
    run, transport = context.store.runs.create_run(plan), cast("Any", None)
    begun = context.store.runs.begin_run(run.run_id, [terms_of(site) for site in ("plant-1", "plant-4")])
    context.store.sites.suspend("plant-4")
    with pytest.raises(InvalidInputError, match="not enrolled and active: plant-4"):
        context.coordinator(run, transport)
    keys = context.coordinator(begun, transport)._parts.keys
    assert keys.keys() == asked and keys.get("plant-4", "") == "" and keys["plant-1"]
    context.store.sites.reactivate("plant-4")
    again = context.coordinator(begun, transport)._parts.keys
    assert dict(again) == {site: key_of(context, site) for site in ("plant-1", "plant-4")}


def test_the_newest_version_of_an_asset_type_is_what_a_flow_works_with(context: FlowContext) -> None:
    newer = builtin_asset_type(PUMP).model_copy(update={"version": 2, "description": "of the new line"})
    context.store.asset_types.add(newer)
    assert context.asset_type(PUMP) == newer


def test_no_connection_to_the_store_is_left_open(settings: Settings) -> None:
    with open_context(settings) as context:
        context.store.sites.list_sites()
        pool: Any = context.store.engine.pool
        assert pool.checkedin() > 0
    assert pool.checkedin() == 0
