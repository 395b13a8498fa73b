"""``ballast model``: shown, promoted, rolled back, exported, unlearned."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from services.contracts.problems.training_spec import TrainingSpec
from tests.api.cli.changes import PUMP, actions
from tests.api.conftest import SITES, a_plan, a_version, register


def test_models_are_shown_promoted_and_rolled_back(shell: Any, behind: Any) -> None:
    assert [model["name"] for model in shell.read("model", "list") if model["name"] == "pumps"] == ["pumps"]
    assert shell.read("model", "show", "pumps")["versions"][0]["version"] == "1"
    assert shell.read("model", "show", "pumps", "champion")["certified_gap"] == 8e-4
    assert "plant-east" in shell.good("model", "show", "pumps", "1")
    fair = shell.good("model", "fairness", "pumps", "1")
    assert "WORST-CASE RISK" in fair and "Gini coefficient" in fair and "plant-west" in fair
    assert "figures of 2 sites only" in fair and fair == shell.good("model", "fairness", "pumps")
    report = shell.read("model", "fairness", "pumps", "champion")
    names, *rows = [re.split("  +", line.strip()) for line in fair.split("\n\n")[1].splitlines()]
    for site, cells in zip(report["sites"], rows, strict=False):
        told = dict(zip(names, cells, strict=True))
        assert told["SITE"] == site["site_id"]
        for name in ("weight", "worst-case risk", "held-out loss", "f1"):
            value = site["loss" if name == "held-out loss" else name.replace("-", "_").replace(" ", "_")]
            assert told[name.upper()] == ("-" if value is None else f"{value:.4g}"), name
    (indices,) = report["indices"]
    assert (indices["relative_unfairness"], indices["gini"]) == (1.0, 0.0)
    assert "champion already" in shell.refused("model", "promote", "pumps", "--reason", "again")
    assert "no champion before" in shell.refused("model", "rollback", "pumps", "--reason", "bad")
    code, _, err = shell.run("model", "rollback", "pumps")
    assert (code, "--reason" in err) == (2, True)
    assert behind.store.audit.list_events() == []


def test_of_a_network_no_ball_is_told(shell: Any, behind: Any) -> None:
    name = f"deep-{behind.store.engine.dialect.name}"
    planar = a_version(name, "ce" * 16)
    spec = TrainingSpec.model_validate({"loss": "cross_entropy", "network": {"hidden": 2}})
    size = 2 * (len(planar.asset_type.features) + 1) + 3 * len(planar.asset_type.fault_classes)
    network = planar.model_copy(update={"spec": spec, "weights": np.ones((1, size)), "worst_case_risk": None})
    said = shell.good("model", "show", name, register(behind.registry, network))
    assert "RADIUS" not in said and "WORST-CASE RISK" not in said and "worst_case_risk" not in said
    said = shell.good("model", "show", "pumps", "1")
    assert "RADIUS" in said and "WORST-CASE RISK" in said and "worst_case_risk" in said


def test_promotion_and_rollback(shell: Any, behind: Any, a_model: Callable[..., list[str]]) -> None:
    name = f"cmd-{behind.store.engine.dialect.name}"
    first, second = a_model(behind, name, 0.9, 0.5)
    said = shell.good("model", "promote", name, first, "--reason", "tested")
    assert said == f"version {first} of model {name} is champion\n"
    assert "min_site_f1" in shell.refused("model", "promote", name, "--reason", "hope")
    said = shell.good("model", "promote", name, "--reason", "hope", "--ignore-gates")
    assert said == f"version {second} of model {name} is champion instead of {first}\n"
    said = shell.good("model", "rollback", name, "--reason", "false alarms")
    assert said == f"version {first} of model {name} is champion again instead of {second}\n"
    assert [reason for _, _, reason in actions(behind)] == ["false alarms", "hope", "tested"]


def test_what_is_exported_and_unlearned_is_told_as_json_too(
    shell: Any, behind: Any, a_model: Callable[..., list[str]], new_key: Callable[[], str]
) -> None:
    name = f"told-{behind.store.engine.dialect.name}"
    (number,) = a_model(behind, name, 0.9)
    header = shell.home / "pump.h"
    told = shell.read("model", "export", name, number, "--format", "c99", "--out", str(header))
    assert told == {"model": name, "version": number, "file": str(header), "bytes": header.stat().st_size}
    shell.good("asset-type", "add", PUMP)
    for site in SITES:
        behind.store.sites.enrol(site, new_key(), ["triplex-pump"])
    behind.store.plans.create(a_plan(name, sites=SITES))
    assert "site: a name has 1 to 40 lower-case" in shell.refused("model", "unlearn", name, "--site", "Plant_East")
    gone = shell.read("model", "unlearn", name, "--site", SITES[0])
    assert (gone["model"], gone["versions"], gone["purge"]) == (name, [number], "promotion")
    assert behind.store.audit.list_events(limit=1)[0].reason == "the plant left"
