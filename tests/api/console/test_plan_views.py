"""What a run now would be, when a plan runs next, and the form of a run's own terms: from records alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from api.console.views import plans
from api.console.views.links import pages_of
from api.console.views.plans import dry_run, next_runs
from api.console.views.run_terms import given_terms, overrides_of, run_terms
from services.contracts.errors import InvalidInputError
from services.contracts.history.records import PlanRecord
from services.contracts.history.run import Run
from services.contracts.history.site import Site
from services.contracts.plans.plan import Plan
from services.process.settings import Settings

NOW = datetime(2031, 1, 2, tzinfo=UTC)


def a_plan(**changes: Any) -> Plan:
    return Plan.model_validate({"name": "weekly", "asset_type": "pump", "reveal": "each site"} | changes)


def site(number: int, status: str = "active", seen: datetime | None = NOW) -> Site:
    return Site.model_validate({
        "site_id": f"plant-{number}", "public_key": "U", "enrolled_at": NOW, "updated_at": NOW, "status": status,
        "last_seen": seen,
    })


def a_run(status: str) -> Run:
    return Run(run_id="a" * 32, plan=a_plan(), status=status, created_at=NOW, updated_at=NOW)


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What a run of a plan would be, with these plants."""
    monkeypatch.setattr(plans, "check_plan", lambda *_: None)

    def dry(plan: Plan, *sites: Site, runs: tuple[Run, ...] = ()) -> tuple[list[str], list[str], str]:
        backend: Any = SimpleNamespace(store=SimpleNamespace(sites=SimpleNamespace(
            list_sites=lambda asset_type: list(sites) if asset_type == "pump" else [])))
        found = dry_run(backend, plan, runs, NOW)
        return [each.site_id for each in found.asked], sorted(found.present), "; ".join(found.problems)

    return dry


def test_active_plants_are_asked_that_the_plan_names_or_all(tried: Any) -> None:
    silent = NOW - timedelta(days=1)
    sites = (site(1), site(2, "suspended"), site(3, seen=silent), site(4, seen=None), site(5, "removed"))
    asked, present, said = tried(a_plan(min_sites=1), *sites)
    assert (asked, present, said) == (["plant-1", "plant-3", "plant-4"], ["plant-1"], "")
    asked, present, said = tried(a_plan(min_sites=1, sites=["plant-2", "plant-1"]), *sites)
    assert (asked, present) == (["plant-1"], ["plant-1"])
    assert said == "suspended, and named by the plan: plant-2"


def test_what_stands_in_the_way_is_said(tried: Any) -> None:
    here, away = site(1), site(2, seen=None)
    assert tried(a_plan(min_sites=3), here, away)[2] == "the plan wants 3 plants, and 2 are active"
    assert tried(a_plan(min_sites=2), here, away)[2] == "the plan wants 2 plants, and 1 are connected now"
    sums = a_plan(min_sites=1, reveal="sums", min_cohort=3)
    assert tried(sums, here, site(2))[2] == "sums need a cohort of 3 plants, and 2 are active"
    assert tried(sums, here, site(2), site(3))[2] == ""


@pytest.mark.parametrize(("status", "stands"), [
    ("pending", True), ("running", True), ("completed", False), ("failed", False), ("cancelled", False),
])
def test_one_run_of_a_plan_at_a_time(tried: Any, status: str, stands: bool) -> None:
    assert ("one run of a plan at a time" in tried(a_plan(min_sites=1), site(1), runs=(a_run(status),))[2]) is stands


def test_a_plan_that_does_not_fit_any_more_is_said_and_not_drafted(tried: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise InvalidInputError("no such sensor")

    monkeypatch.setattr(plans, "check_plan", refuse)
    assert tried(a_plan(min_sites=1), site(1))[2] == "no such sensor"
    backend: Any = SimpleNamespace(store=None)
    record = PlanRecord(plan=a_plan(), created_at=NOW, updated_at=NOW)
    drafted = plans.draft(backend, record, 'name = "weekly"\nasset_type = "pump"\n')
    assert (drafted.plan, drafted.changes, drafted.problem) == (None, {}, "no such sensor")


@pytest.mark.parametrize(("changes", "count"), [({}, 5), ({"paused": True}, 0), ({"archived": True}, 0)])
def test_a_plan_that_is_paused_or_put_away_has_no_next_run(changes: dict[str, bool], count: int) -> None:
    record = PlanRecord(plan=a_plan(cron="0 3 * * 1"), created_at=NOW, updated_at=NOW, **changes)
    found = next_runs(record, NOW)
    assert len(found) == count and list(found) == sorted(found)
    assert next_runs(record.model_copy(update={"plan": a_plan()}), NOW) == ()


def test_a_next_run_is_at_the_hour_of_the_plans_own_zone() -> None:
    record = PlanRecord(plan=a_plan(cron="0 3 * * *", timezone="Asia/Tokyo"), created_at=NOW, updated_at=NOW)
    assert [each.astimezone(UTC) for each in next_runs(record, NOW, 2)] == [
        NOW + timedelta(hours=18), NOW + timedelta(hours=42),
    ]


def test_terms_of_one_run_are_what_was_filled_in() -> None:
    fields = {"set-gap": " 1e-2 ", "set-max_rounds": "", "set-auto_promote": "false", "reason": "now", "set-x": "false"}
    asked = given_terms(fields)
    assert asked == {"gap": "1e-2", "auto_promote": "false", "x": "false"}
    assert overrides_of(asked) == {"gap": "1e-2", "auto_promote": False, "x": "false"}
    assert overrides_of({"auto_promote": "true"}) == {"auto_promote": "true"}, "left for the plan's check to refuse"
    shown = {each.name: (each.of_plan, each.given) for each in run_terms(a_plan(max_rounds=7), asked)}
    assert shown["max_rounds"] == ("7", "") and shown["gap"] == ("0.001", "1e-2")


@pytest.mark.parametrize(("sections", "wanted"), [
    ({}, {"MLflow": "http://127.0.0.1:5000", "Prefect": "http://127.0.0.1:4200"}),
    ({"mlflow": {"tracking_uri": "sqlite:////var/mlflow.db"}}, {"Prefect": "http://127.0.0.1:4200"}),
    ({"mlflow": {"host": "::1"}, "prefect": {"host": "::1"}},
     {"MLflow": "http://[::1]:5000", "Prefect": "http://[::1]:4200"}),
    ({"mlflow": {"tracking_uri": "https://mlflow.example"}, "prefect": {"api_url": "https://prefect.example/api"}},
     {"MLflow": "https://mlflow.example", "Prefect": "https://prefect.example"}),
    ({"mlflow": {"tracking_uri": "https://ballast:secret@mlflow.example:5443/team?key=secret"},
      "prefect": {"api_url": "https://prefect.example/api"}},
     {"MLflow": "https://mlflow.example:5443/team", "Prefect": "https://prefect.example"}),
])
def test_pages_of_the_other_servers_are_named_where_there_are_any(
    sections: dict[str, Any], wanted: dict[str, str], tmp_path: Any
) -> None:
    """Never the place of a database, nor what opens a server: every viewer sees the pages."""
    assert pages_of(Settings.model_validate({"home": tmp_path} | sections)) == wanted
