"""A key that is not known comes with the one that was meant; what is shown as TOML reads back as it was."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from services.contracts.errors import InvalidInputError
from services.contracts.machines.asset_type import AssetType
from services.contracts.plans.plan import Plan
from services.contracts.plans.plan_changes import plan_changes
from services.contracts.reading import read_contract, read_toml
from services.contracts.toml_text import to_toml
from services.process.settings import Settings
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.settings import SiteSettings

PLAN = Plan.model_validate({
    "name": "pumps", "asset_type": "pump", "cron": "0 2 * * *", "parameters": {"level": 1e-320, "step": -0.0},
    "spec": {"label_flip_cost": float("inf"), "lift": {"components": 4, "bandwidth": 0.1 + 0.2}},
    "site_settings": {"plant-1": {"radius": {"rule": "fixed", "value": 1e-17}}, "plant-2": {"weight": 1.0}},
    "gates": {"min_f1": 0.5, "fairness": [{"index": "gini", "at_most": 0.3}, {"index": "palma", "at_most": 2.0}]},
})


@pytest.mark.parametrize(("kind", "values", "said"), [
    (Plan, {"metod": "fdr-sm"}, "metod: there is no such key; did you mean method?"),
    (Plan, {"radius": 1}, "radius: there is no such key here; did you mean spec.radius?"),
    (Plan, {"value": 1}, "value: there is no such key here; did you mean spec.radius.value?"),
    (Plan, {"spec": {"transport_nrom": "l1"}}, "did you mean transport_norm?"),
    (Plan, {"spec": {"loss": {"name": "huber", "epsilom": 1.0}}}, "did you mean epsilon?"),
    (Plan, {"gates": {"fairness": [{"index": "gini", "at_mots": 1.0}]}}, "did you mean at_most?"),
    (Plan, {"site_settings": {"plant-1": {"wieght": 1.0}}}, "did you mean weight?"),
    (Plan, {"site_settings": {"plant-1": {"zzz": 1.0}}}, "known here: radius, label_flip_cost, weight"),
    (AssetType, {"feature": []}, "did you mean features?"),
    (SitePolicy, {"min_sample": 3}, "did you mean min_samples?"),
    (SiteSettings, {"data": {"kind": "csv", "path": "x", "sed": 1}}, "did you mean seed?"),
    (SiteSettings, {"data": {"kind": "simulator", "path": "x", "sed": 1}}, "no such key; known here: kind, path"),
])
def test_which_key_was_meant(kind: Any, values: dict[str, Any], said: str, tmp_path: Path) -> None:
    import json

    path = tmp_path / "given.json"
    path.write_text(json.dumps(values))
    with pytest.raises(InvalidInputError) as refused:
        read_contract(kind, path, "thing")
    assert said in str(refused.value)


def test_settings_say_which_key_was_meant(tmp_path: Path) -> None:
    (tmp_path / "ballast.toml").write_text("[nats]\nprot = 4222\n")
    with pytest.raises(InvalidInputError, match=r"nats\.prot: there is no such key; did you mean port\?"):
        Settings.load(tmp_path, {})


def test_a_plan_as_toml_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(to_toml(PLAN), encoding="utf-8")
    assert read_toml(Plan, path, "plan") == PLAN
    odd = PLAN.model_copy(update={"timezone": 'a"\\\n\x7fü'})
    assert tomllib.loads(to_toml(odd))["timezone"] == odd.timezone


def test_what_differs_has_its_path() -> None:
    after = PLAN.model_copy(update={"max_rounds": 7, "parameters": {"step": -0.0, "more": 1.0}})
    assert plan_changes(PLAN, PLAN) == {}
    assert plan_changes(PLAN, after) == {
        "parameters.level": (1e-320, None), "parameters.more": (None, 1.0), "max_rounds": (100, 7),
    }
