"""The names that dashboards and alerts go by, what they say, and what they do not."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from services.contracts.access.identity import Role
from services.process.process_lock import held
from tests.api.conftest import MODEL

NAMES = {
    "ballast_abstentions": "counter", "ballast_audit_entries": "gauge", "ballast_build": "gauge",
    "ballast_champion_version": "gauge", "ballast_diagnoses": "counter", "ballast_disk_free_bytes": "gauge",
    "ballast_flows_up": "gauge", "ballast_http_request_seconds": "histogram", "ballast_http_requests": "counter",
    "ballast_last_backup_timestamp_seconds": "gauge", "ballast_rounds": "gauge", "ballast_run_gap": "gauge",
    "ballast_run_idle_seconds": "gauge", "ballast_run_rounds": "gauge", "ballast_runs": "gauge",
    "ballast_site_silence_seconds": "gauge", "ballast_sites": "gauge", "ballast_store_up": "gauge",
    "ballast_webhooks": "gauge",
    # of the process, by the client library
    "process_cpu_seconds": "counter", "process_resident_memory_bytes": "gauge", "process_start_time_seconds": "gauge",
    "process_virtual_memory_bytes": "gauge", "process_open_fds": "gauge", "process_max_fds": "gauge",
}
"""All metrics. A name here is a promise: rename none."""


def scraped(world: Any) -> dict[str, Any]:
    answer = world.call(Role.VIEWER, "GET", "/metrics")
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain")
    return {family.name: family for family in text_string_to_metric_families(answer.text)}


def value(found: dict[str, Any], name: str, **labels: str) -> float | None:
    family = next(family for family in found.values() if name.startswith(family.name))
    return next((each.value for each in family.samples if each.name == name and each.labels == labels), None)


def test_the_metrics_are_those_of_the_list(world: Any) -> None:
    assert world.call(Role.VIEWER, "GET", "/v1/models").status_code == 200
    found = scraped(world)
    found = scraped(world)  # the first scrape is a request too
    assert {name: family.type for name, family in found.items()} == NAMES


def test_requests_are_counted_by_route_not_by_address(world: Any) -> None:
    for name in (MODEL, "secret-plant-name", MODEL):
        world.call(Role.VIEWER, "GET", f"/v1/models/{name}")
    world.call(None, "GET", "/v1/models/whoever")
    world.call(None, "GET", "/no/such/page/at-all")
    found = scraped(world)
    route = {"method": "GET", "route": "/v1/models/{name}"}
    assert value(found, "ballast_http_requests_total", **route, status="200") == 2
    assert value(found, "ballast_http_requests_total", **route, status="404") == 1
    assert value(found, "ballast_http_request_seconds_count", route="/v1/models/{name}") == 3
    nowhere = {"method": "none", "route": "none"}
    assert value(found, "ballast_http_requests_total", **nowhere, status="404") == 1
    assert value(found, "ballast_http_requests_total", **nowhere, status="401") == 1
    text = world.call(Role.VIEWER, "GET", "/metrics").text
    assert "secret-plant-name" not in text and "whoever" not in text and "at-all" not in text


def test_diagnoses_are_counted(world: Any) -> None:
    version = world.backend.registry.get(MODEL, "champion")
    before = world.backend.predictors.tally.answers()
    assert not before, "nothing was asked yet"
    sample = {feature.name: (feature.low + feature.high) / 2 for feature in version.asset_type.features}
    for body in ({"samples": [sample]}, {"samples": [sample] * 60}, {"samples": [sample] * 3, "units": {}}):
        answer = world.call(Role.VIEWER, "POST", f"/v1/models/{MODEL}/diagnose", body)
        assert answer.status_code == 200, answer.text
    row = [sample[feature.name] for feature in version.asset_type.features]
    tensor = {"name": "features", "datatype": "FP64", "shape": [2, len(row)], "data": row * 2}
    assert world.call(Role.VIEWER, "POST", f"/v2/models/{MODEL}/infer", {"inputs": [tensor]}).status_code == 200
    world.backend.store.model_versions.record_alias(MODEL, "champion", version.version, "me", "best")
    found = scraped(world)
    of = {"model": MODEL, "version": version.version}
    counted = [each for each in found["ballast_diagnoses"].samples if each.name.endswith("_total")]
    assert sum(each.value for each in counted) == 66 and all(each.labels.items() >= of.items() for each in counted)
    assert value(found, "ballast_abstentions_total", **of) is not None
    assert value(found, "ballast_champion_version", model=MODEL) == float(version.version)


def test_sites_are_counted_under_names_of_their_own(world: Any, new_key: Any) -> None:
    store = world.backend.store
    before = value(scraped(world), "ballast_sites", state="connected") or 0
    for name in ("plant-bremen", "plant-kiel", "plant-husum"):
        store.sites.enrol(name, new_key(), ["triplex-pump"])
    store.sites.seen("plant-bremen", "1")
    store.sites.suspend("plant-kiel")
    found = scraped(world)
    assert value(found, "ballast_sites", state="connected") == before + 1
    assert value(found, "ballast_sites", state="suspended") == 1
    text = world.call(Role.VIEWER, "GET", "/metrics").text
    assert not any(name in text for name in ("bremen", "kiel", "husum"))
    pseudonym = world.backend.pseudonyms.name("metrics", "plant-bremen")
    assert 0 <= (value(found, "ballast_site_silence_seconds", site=pseudonym) or 0) < 60
    husum = world.backend.pseudonyms.name("metrics", "plant-husum")
    assert value(found, "ballast_site_silence_seconds", site=husum) == float("inf")


def test_backup_trail_and_store(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert value(scraped(world), "ballast_last_backup_timestamp_seconds") == 0.0
    world.backend.store.audit.append(actor="me", role=None, action="backup.made", target="store")
    found = scraped(world)
    assert value(found, "ballast_last_backup_timestamp_seconds") == pytest.approx(
        datetime.now(UTC).timestamp(), abs=timedelta(minutes=5).total_seconds()
    )
    (newest,) = world.backend.store.audit.list_events(limit=1)
    assert value(found, "ballast_audit_entries") == newest.number
    assert value(found, "ballast_store_up") == 1.0 and value(found, "ballast_flows_up") == 0.0


def test_the_state_is_for_administrators(world: Any) -> None:
    state = world.call(Role.ADMINISTRATOR, "GET", "/v1/system/state").json()
    assert state["store"] == "sqlite" and state["last_backup"] is None and state["flows_running"] is False
    assert state["disk_free_bytes"] > 0 and state["schema_revision"] >= "0009"
    assert world.call(Role.OPERATOR, "GET", "/v1/system/state").status_code == 403


def test_a_flows_process_that_hangs_is_not_up(world: Any) -> None:
    """It holds its lock; the alert goes by this figure."""
    with held(world.settings.flows_lock):
        assert value(scraped(world), "ballast_flows_up") == 1.0
        os.utime(world.settings.flows_lock, (0, 0))
        assert value(scraped(world), "ballast_flows_up") == 0.0
