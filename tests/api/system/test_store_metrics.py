"""The figures of a scrape, from what the store's parts say."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from api.system import store_metrics
from api.system.store_metrics import StoreMetrics
from services.contracts.errors import UnavailableError
from services.contracts.history.site import Site

NOW = datetime(2031, 1, 2, 12, tzinfo=UTC)


def run(plan: str, gap: float | None, idle: float) -> Any:
    return SimpleNamespace(
        plan=SimpleNamespace(name=plan), rounds=7, gap=gap, created_at=NOW - timedelta(days=1),
        updated_at=NOW - timedelta(seconds=idle),
    )


def hook(failures: int, disabled: bool) -> Any:
    return SimpleNamespace(failures=failures, disabled_at=NOW if disabled else None)


def site(name: str, status: Any, silent: float | None) -> Site:
    seen = None if silent is None else NOW - timedelta(seconds=silent)
    return Site(site_id=name, public_key="U", enrolled_at=NOW, updated_at=NOW, status=status, last_seen=seen)


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[tuple[str, ...], float]]:
    """Values by metric and labels."""
    aliases = {
        ("pumps", "champion"): "3", ("pumps", "challenger"): "4", ("rigs", "champion"): None, ("old", "champion"): "x",
    }
    store = SimpleNamespace(
        overview=SimpleNamespace(
            run_totals=lambda: {"completed": (3, 40), "running": (2, 14)},
            aliases=lambda: {key: SimpleNamespace(version=version) for key, version in aliases.items()},
        ),
        runs=SimpleNamespace(unfinished_runs=lambda: [run("a", 0.25, 30.0), run("b", None, 4.0)]),
        webhooks=SimpleNamespace(list_webhooks=lambda: [
            hook(0, False), hook(0, False), hook(2, False), hook(9, True), hook(0, True), hook(1, True),
        ]),
        audit=SimpleNamespace(list_events=lambda limit: [SimpleNamespace(number=9)]),
        sites=SimpleNamespace(list_sites=lambda: [
            site("here", "active", 1.0), site("gone", "active", 86400.0), site("new", "active", None),
            site("held", "suspended", 1.0), site("left", "removed", 1.0),
        ]),
    )
    monkeypatch.setattr(store_metrics, "last_backup", lambda _: None)
    monkeypatch.setattr(store_metrics, "flows_at_work", lambda _: None)
    backend: Any = SimpleNamespace(
        store=store, settings=SimpleNamespace(home=tmp_path),
        pseudonyms=SimpleNamespace(name=lambda of, name: f"{of} {name}"),
    )
    return {
        metric.name: {tuple(each.labels.values()): each.value for each in metric.samples}
        for metric in StoreMetrics(backend)._of_store(NOW)
    }


def test_runs_and_their_rounds(found: dict[str, Any]) -> None:
    assert found["ballast_runs"] == {("completed",): 3.0, ("running",): 2.0}
    assert found["ballast_rounds"] == {(): 54.0} and found["ballast_run_rounds"] == {("a",): 7.0, ("b",): 7.0}
    assert found["ballast_run_gap"] == {("a",): 0.25}, "before the first bound there is none"
    assert found["ballast_run_idle_seconds"] == {("a",): 30.0, ("b",): 4.0}, "since it came further, not since it began"


def test_a_webhook_has_one_state_and_one_that_is_disabled_is_that(found: dict[str, Any]) -> None:
    assert found["ballast_webhooks"] == {("ok",): 2.0, ("failing",): 1.0, ("disabled",): 3.0}


def test_a_champion_is_what_the_alias_points_at_now(found: dict[str, Any]) -> None:
    assert found["ballast_champion_version"] == {("pumps",): 3.0}


def test_a_plant_that_was_removed_is_none_and_one_that_is_held_is_not_silent(found: dict[str, Any]) -> None:
    assert found["ballast_sites"] == {("connected",): 1.0, ("silent",): 1.0, ("never",): 1.0, ("suspended",): 1.0}
    assert found["ballast_site_silence_seconds"] == {
        ("metrics here",): 1.0, ("metrics gone",): 86400.0, ("metrics new",): math.inf,
    }


def test_what_is_not_known_is_not_told(found: dict[str, Any]) -> None:
    assert found["ballast_last_backup_timestamp_seconds"] == {(): 0.0} and "ballast_flows_up" not in found
    assert found["ballast_audit_entries"] == {(): 9.0}


def test_where_the_store_is_away_that_is_told_alone() -> None:
    def away() -> Any:
        raise UnavailableError("away")

    tally = SimpleNamespace(answers=lambda: {("pumps", "1", 2): 5, ("pumps", "1", None): 3, ("pumps", "1", 0): 1},
                            abstentions=lambda: {("pumps", "1"): 2})
    backend: Any = SimpleNamespace(
        store=SimpleNamespace(overview=SimpleNamespace(run_totals=away)), settings=None,
        predictors=SimpleNamespace(tally=tally),
    )
    metrics = {metric.name: metric for metric in StoreMetrics(backend).collect()}
    assert set(metrics) == {"ballast_build", "ballast_diagnoses", "ballast_abstentions", "ballast_store_up"}
    assert [each.value for each in metrics["ballast_store_up"].samples] == [0.0]
    counted = [(each.labels["classes"], each.value) for each in metrics["ballast_diagnoses"].samples]
    assert counted == [("2", 5), ("", 3), ("0", 1)], "a set of no class is none that was not asked for"
