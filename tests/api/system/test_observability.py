"""The dashboard and the alert rules name metrics that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.api.system.test_metrics import NAMES

yaml: Any = pytest.importorskip("yaml")
FOLDER = Path(__file__).parents[3] / "infra" / "observability"
SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}
THERE = {f"{name}{suffix}" for name, kind in NAMES.items() for suffix in SUFFIXES[kind]}
NAMED = re.compile(r"\b(?:ballast|process)_[a-z_]+\b(?!\")")


def expressions() -> dict[str, str]:
    groups = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"]
    found = {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"]}
    assert all(rule["annotations"]["summary"] and rule["labels"]["severity"] in ("page", "ticket")
               for group in groups for rule in group["rules"])
    panels = json.loads((FOLDER / "dashboard.json").read_text())["panels"]
    return found | {panel["title"]: " ".join(each["expr"] for each in panel["targets"]) for panel in panels}


@pytest.mark.parametrize(("title", "expression"), expressions().items())
def test_what_is_named_is_there(title: str, expression: str) -> None:
    named = set(NAMED.findall(expression))
    assert named <= THERE
    assert named or expression.startswith("up{")


def test_an_alert_that_a_thing_that_never_was_sets_off_says_so() -> None:
    """A site that was never connected has been silent without end, and the last backup of none is of the year 1970."""
    rules = {rule["alert"]: rule for group in yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"]
             for rule in group["rules"]}
    for name in ("BallastSiteSilent", "BallastBackupOld"):
        assert re.search(r"never|none was ever", rules[name]["annotations"]["summary"])


def test_every_metric_of_the_service_is_shown() -> None:
    shown = {name for each in expressions().values() for name in NAMED.findall(each)}
    for name, kind in NAMES.items():
        if name.startswith("ballast") and name != "ballast_build":
            assert shown & {f"{name}{suffix}" for suffix in SUFFIXES[kind]}, name
