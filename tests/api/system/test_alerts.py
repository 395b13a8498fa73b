"""Each alert is set off by what its summary says, and by nothing that is well; panels have units that fit."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

yaml: Any = pytest.importorskip("yaml")
FOLDER = Path(__file__).parents[3] / "infra" / "observability"
RULES = {rule["alert"]: rule for group in yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"]
         for rule in group["rules"]}
PANELS = {each["title"]: each for each in json.loads((FOLDER / "dashboard.json").read_text())["panels"]}
METRIC = re.compile(r"ballast_\w+?(?=_total|_bucket|\b)")
DAY, HOUR = 86400.0, 3600.0
ERRORS = 'sum(rate(ballast_http_requests_total{status=~"5.."}[5m]))'
ABSTAINED = "sum by (model) (rate(ballast_abstentions_total[1h]))"
DIAGNOSED = "sum by (model) (rate(ballast_diagnoses_total[1h]))"
TRAIL = "delta(ballast_audit_entries[10m])"
BACKUP = "ballast_last_backup_timestamp_seconds"
CASES = {  # what is asked, a value that is well, one that the summary speaks of
    "BallastDown": ('up{job="ballast"}', 1.0, 0.0),
    "BallastStoreDown": ("ballast_store_up", 1.0, 0.0),
    "BallastFlowsDown": ("ballast_flows_up", 1.0, 0.0),
    "BallastRunStandsStill": ("ballast_run_idle_seconds", 0.4 * HOUR, 0.6 * HOUR),
    "BallastSiteSilent": ("ballast_site_silence_seconds", 0.9 * HOUR, 1.1 * HOUR),
    "BallastWebhookDisabled": ('ballast_webhooks{state="disabled"}', 0.0, 1.0),
    "BallastBackupOld": (BACKUP, time.time() - 7.5 * DAY, time.time() - 8.5 * DAY),
    "BallastDiskFull": ("ballast_disk_free_bytes", 3e9, 1.9e9),
    "BallastErrors": (ERRORS, 0.0, 1.0),
    "BallastAbstains": (ABSTAINED, 0.2, 0.3),
    "BallastTrailShrank": (TRAIL, 3.0, -1.0),
}


def is_set_off(name: str, asked: str, value: float) -> bool:
    """Whether a rule holds of one series: each of its queries in the place of its number."""
    text = " ".join(RULES[name]["expr"].split())
    assert text.count(asked) == 1
    text = text.replace(asked, repr(value)).replace(DIAGNOSED, "1.0").replace("time()", repr(time.time()))
    assert re.fullmatch(r"[0-9e.+\-*/ <>=]+", text), text
    return bool(eval(text))  # noqa: S307 - numbers and signs alone, of a file of ours


@pytest.mark.parametrize("name", sorted(RULES))
def test_an_alert_is_set_off_by_what_its_summary_says(name: str) -> None:
    asked, well, wrong = CASES[name]
    assert not is_set_off(name, asked, well)
    assert is_set_off(name, asked, wrong)


def test_what_stops_diagnoses_or_training_wakes_somebody() -> None:
    """A backup that was never made and a site that was never there are no reason to get up at night."""
    assert {name for name, rule in RULES.items() if rule["labels"]["severity"] == "page"} == {
        "BallastDown", "BallastStoreDown", "BallastFlowsDown", "BallastDiskFull", "BallastTrailShrank",
    }
    assert is_set_off("BallastBackupOld", BACKUP, 0.0)
    assert is_set_off("BallastSiteSilent", CASES["BallastSiteSilent"][0], 1e300)


@pytest.mark.parametrize("title", sorted(PANELS))
def test_a_panel_has_the_unit_of_what_it_shows(title: str) -> None:
    unit = PANELS[title]["fieldConfig"]["defaults"]["unit"]
    for each in PANELS[title]["targets"]:
        asked = each["expr"]
        if "rate(ballast_http_requests" in asked:
            assert unit == "reqps"
        elif re.search(r"_seconds(_bucket)?\b", asked):
            assert unit == "s"
        else:
            assert (unit == "bytes") == ("_bytes" in asked)


def test_a_panel_shows_what_its_title_says() -> None:
    shown = {
        title: {name for each in panel["targets"] for name in METRIC.findall(each["expr"])}
        for title, panel in PANELS.items()
    }
    assert shown["Certified gap of unfinished runs"] == {"ballast_run_gap"}
    assert shown["Rounds of unfinished runs"] == {"ballast_run_rounds", "ballast_rounds"}
    assert shown["Runs that stand still"] == {"ballast_run_idle_seconds"}
    assert shown["Silence of sites"] == {"ballast_site_silence_seconds"}
    assert shown["Age of the last backup"] == {"ballast_last_backup_timestamp_seconds"}
    assert shown["Latency, 95th percentile"] == {"ballast_http_request_seconds"}
    assert PANELS["Latency, 95th percentile"]["targets"][0]["expr"].startswith("histogram_quantile(0.95, ")
    assert PANELS["Age of the last backup"]["targets"][0]["expr"].startswith("time() - ")
