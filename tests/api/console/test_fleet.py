"""What of the fleet wants attention, from records alone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from api.console.views import fleet
from services.contracts.errors import UnavailableError
from services.contracts.history.events import DRIFTED
from services.contracts.history.records import AliasChange, VersionRecord
from services.contracts.history.run import ExcludedSite, Run
from services.contracts.history.site import Site
from services.contracts.plans.plan import Plan

NOW = datetime(2031, 1, 2, tzinfo=UTC)


def site(name: str = "plant-1", **changes: Any) -> Site:
    return Site(site_id=name, public_key="U", enrolled_at=NOW, updated_at=NOW, **changes)


def row(name: str, state: str = "connected", **changes: Any) -> fleet.PlantRow:
    fields: dict[str, Any] = {"presence": "", "last_answer": None, "score": None, "notice": ""}
    return fleet.PlantRow(name=name, site=site(), state=state, **fields | changes)


@pytest.mark.parametrize(("changes", "excluded", "state"), [
    ({"last_seen": NOW}, set(), "connected"), ({}, set(), "never seen"),
    ({"last_seen": NOW - timedelta(days=1)}, set(), "silent"), ({"last_seen": NOW}, {"plant-1"}, "quarantined"),
    ({"last_seen": NOW, "status": "suspended"}, {"plant-1"}, "suspended"), ({"last_seen": NOW}, {"other"}, "connected"),
])
def test_the_state_of_a_plant(changes: dict[str, Any], excluded: set[str], state: str) -> None:
    assert fleet._state(site(**changes), excluded, NOW) == state


def test_a_plant_that_a_run_waited_for_in_vain_is_not_quarantined() -> None:
    codes = ("contradiction", "copied", "false_shares", "implausible", "not_finite", "absent", "late", "noise_limit")
    left_out = tuple(ExcludedSite(site_id=code.replace("_", "-"), round=1, code=code, reason="") for code in codes)
    run = Run(
        run_id="0" * 32, plan=Plan(name="pumps", asset_type="rig"), status="completed", created_at=NOW, updated_at=NOW,
        excluded=left_out,
    )
    assert fleet._convicted([run]) == {"contradiction", "copied", "false-shares", "implausible", "not-finite"}


def told(newest: str, champion: str | None, status: str = "registered") -> list[fleet.Attention]:
    record = VersionRecord(name="pumps", version=newest, run_id="0" * 32, status=status, reason="why", created_at=NOW)
    change = AliasChange(
        number=1, name="pumps", alias="champion", version=champion, previous_version=None, actor="", reason="", at=NOW
    )
    return [*fleet._of_versions({"pumps": record}, {("pumps", "champion"): change})]


def test_a_version_is_to_be_judged_where_it_is_newer_than_the_champion_by_number() -> None:
    assert told("2", "2") == [] and told("9", "10") == []
    (newer,) = told("10", "9")
    assert (newer.level, newer.why) == ("info", "Version 9 is.")
    (first,) = told("1", None)
    assert first.why == "There is no champion yet."
    (failed,) = told("3", "2", "gates_failed")
    assert (failed.level, failed.why, failed.link) == ("warn", "why", "/console/models/pumps/versions/3")


def test_a_model_whose_champion_was_forgotten_has_none_and_one_that_is_not_read_says_why() -> None:
    def away(name: str, version: str) -> None:
        raise UnavailableError(f"version {version} of {name} is away")

    backend: Any = SimpleNamespace(versions=SimpleNamespace(get=away))
    change = AliasChange(
        number=1, name="pumps", alias="champion", version=None, previous_version="2", actor="", reason="", at=NOW
    )
    none = (None, "Model pumps has no champion yet.")
    assert fleet._champion(backend, "pumps", {("pumps", "champion"): change}) == none
    assert fleet._champion(backend, "pumps", {("rigs", "champion"): change}) == none
    there = change.model_copy(update={"version": "3"})
    assert fleet._champion(backend, "pumps", {("pumps", "champion"): there}) == (
        None, "The champion of model pumps cannot be read: version 3 of pumps is away"
    )
    assert fleet._champion(backend, None, {}) == (None, "")


def test_readings_that_moved_and_plants_by_state_are_told() -> None:
    rows = [
        row("a", drift=DRIFTED), row("b", drift=DRIFTED - 0.001), row("c", notice="two agents"),
        *(row(f"s{number}", "silent") for number in range(6)), row("n", "never seen"), row("x", "suspended"),
    ]
    found = [(each.level, each.what) for each in fleet._of_plants(rows)]
    assert found == [
        ("warn", "The readings of a have moved"), ("bad", "c has a problem"),
        ("warn", "6 plants silent: s0, s1, s2, s3 and 2 more"), ("warn", "1 plant never seen: n"),
        ("info", "1 plant suspended: x"),
    ]


@pytest.mark.parametrize(("silent", "names"), [(1, "s0"), (4, "s0, s1, s2, s3"), (5, "s0, s1, s2, s3 and 1 more")])
def test_four_plants_are_named_and_the_rest_are_counted(silent: int, names: str) -> None:
    (found,) = fleet._of_plants([row(f"s{number}", "silent") for number in range(silent)])
    assert found.what == f"{silent} plant{'s' if silent > 1 else ''} silent: {names}"


def test_figures_of_the_plants_are_those_of_the_model_that_was_asked_for(
    world: Any, signed_in: Callable[..., Any]
) -> None:
    (only,) = world.new_model("turbines", 0.5)
    world.backend.registry.promote("turbines", only)
    person = signed_in(world)
    for model in ("pumps", "turbines"):
        answer = person.get(f"/console?model={model}")
        assert f'?model={model}#plants" aria-current="true"' in answer.text, model
    assert "?model=pumps#plants\" aria-current" in person.get("/console?model=nothing").text, "the first by name"


def test_plants_have_the_names_that_the_pages_of_the_model_give_them(world: Any) -> None:
    found, names = fleet.fleet(world.backend, "pumps", NOW, real=False), world.backend.pseudonyms
    assert {row.name for row in found.plants} == {names.name("pumps", row.site.site_id) for row in found.plants}


def test_a_run_without_a_round_hides_nothing_of_what_plants_told(world: Any) -> None:
    """One that has just begun, and one that found too few plants a week ago."""
    runs = world.backend.store.runs

    def told() -> list[tuple[Any, ...]]:
        rows = fleet.fleet(world.backend, "pumps", NOW, real=True).plants
        return [(row.name, row.last_answer, row.drift, row.exposed) for row in rows]

    before = told()
    assert any(row[1] is not None for row in before)
    newest = world.backend.store.overview.newest_runs(with_rounds=True)
    plan = next(run.plan for run in newest if run.plan.name == "pumps")
    begun = runs.create_run(plan)
    assert told() == before
    runs.finish_run(begun.run_id, "failed", "too few plants")
    assert told() == before


@pytest.mark.parametrize(("at_work", "told"), [(True, False), (None, False), (False, True)])
def test_a_run_that_waits_is_told_of_where_this_hosts_flows_are_known_to_be_gone(
    world: Any, monkeypatch: pytest.MonkeyPatch, at_work: bool | None, told: bool
) -> None:
    """None: they are on another host, where nobody here sees them."""
    monkeypatch.setattr(fleet, "flows_at_work", lambda _: at_work)
    plan = Plan(name="pumps", asset_type="triplex-pump")
    world.backend.store.runs.create_run(plan)
    found = [each.what for each in fleet.fleet(world.backend, "pumps", NOW, real=True).attention]
    assert ("A run of pumps waits" in found) is told
