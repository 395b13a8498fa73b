"""``ballast plan`` and ``ballast run``: from a file to a run that is cancelled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.api.cli.changes import PUMP, actions


def test_a_plan_is_created_triggered_and_its_run_cancelled(
    shell: Any, behind: Any, plan_file: Callable[..., str]
) -> None:
    assert "not there" in shell.refused("plan", "create", plan_file())
    shell.good("asset-type", "add", PUMP)
    assert "schedule 0 2 * * *" in shell.good("plan", "create", plan_file('[gates]\nmin_site_f1 = 0.8'))
    assert "already" in shell.refused("plan", "create", plan_file())
    assert shell.good("plan", "pause", "nightly") == "plan nightly is paused\n"
    assert shell.read("plan", "show", "nightly")["paused"] is True
    assert "min_site_f1" in shell.good("plan", "show", "nightly")
    shell.good("plan", "resume", "nightly")
    assert [item["plan"]["name"] for item in shell.read("plan", "list")] == ["nightly"]
    assert "nightly" in shell.good("plan", "list")
    run_id = shell.good("plan", "trigger", "nightly", "--reason", "new pumps").strip()
    assert run_id in shell.refused("plan", "trigger", "nightly")
    assert shell.read("run", "show", run_id)["status"] == "pending"
    assert run_id in shell.good("run", "list", "--status", "pending")
    assert shell.read("run", "list", "--plan", "nobody") == []
    assert shell.read("run", "rounds", run_id) == []
    code, said, aside = shell.run("run", "cancel", run_id)
    assert (code, said) == (0, f"run {run_id} will stop\n")
    assert f"run {run_id} is not ended yet: no flows process runs on" in aside
    assert shell.read("run", "show", run_id)["cancel_requested"] is True
    assert "cancel_requested  yes" in shell.good("run", "show", run_id)
    assert [action for action, _, _ in actions(behind)] == [
        "run.cancel", "plan.trigger", "plan.resume", "plan.pause", "plan.create", "asset_type.put",
    ]


def test_a_run_is_triggered_with_terms_of_its_own(shell: Any, behind: Any, plan_file: Callable[..., str]) -> None:
    shell.good("asset-type", "add", PUMP)
    shell.good("plan", "create", plan_file())
    for given, said in (("reveal=sums", "reveal cannot be set for one run"), ("max_rounds=many", "max_rounds")):
        assert said in shell.refused("plan", "trigger", "nightly", "--set", given)
    run_id = shell.good("plan", "trigger", "nightly", "--set", "max_rounds=50", "--set", "auto_promote=false").strip()
    assert shell.read("run", "show", run_id)["plan"]["overrides"] == {"max_rounds": 50, "auto_promote": False}
    shown = shell.good("run", "show", run_id)
    assert "for this run alone" in shown and "max_rounds = 50" in shown and "auto_promote = false" in shown


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('sites = ["nobody"]', "not enrolled: nobody"),
        ('method = "magic"', "level-bundle"),
        ("cron = 5", "not TOML"),  # the file has one already
        ('colour = "red"', "colour"),
        ("min_sites = 0", "min_sites"),
        ("[spec]\nlabel_flip_cost = -1", "spec.label_flip_cost"),
        ("[spec]\nlabel_flip_cost = 0.0", "spec.label_flip_cost"),
        ("[spec.radius]\nrule = 'fixed'\nvalue = nan", "spec.radius.value"),
        ("[spec.radius]\nrule = 'fixed'\nvalue = -0.1", "spec.radius.value"),
        ("[spec]\ntransport_norm = 'l3'", "spec.transport_norm"),
        ("[parameters]\nspeed = 1.0", "no parameter 'speed'"),
        ("[tuning]\nradius = [3.0]", "two candidates at least to choose from, got 1"),
        ("[tuning]\nradius = [1.0, 3.0]\nbudget = 0.9", "from 1 to 3 trainings, got a budget of 0.9"),
        ("tuning = 'often'", 'tuning: a tuning is "auto", or a table of what is tried'),
        ("[spec]\nlift = 'spline'", "spec.lift: the kind of a lift is fourier, spline, products or nystrom, as in"),
        ("[tuning]\nfolds = 4", "two candidates at least to choose from, got 1"),
        ("coverage = 0.0", "coverage: Input should be greater than 0"),
        ("coverage = '0.9'", "coverage: Input should be a valid number"),
        ("coverage = 1.0", "coverage: Input should be less than 1"),
        ("coverage = 0.9\ncoverage_shift = 0.2", "ask for less than 0.8"),
        ("spec = { support = { matrix = [[1.0]], limits = [1.0] }, lift = { kind = 'spline', segments = 2 } }",
         "leave out the lift, or the polytope"),
        ("sites = ['a', 'b']\nsite_settings = {a = {weight = 0.5}, b = {weight = 0.6}}", "sum to 1.1"),
    ],
)
def test_a_plan_file_that_does_not_fit_is_refused(
    shell: Any, behind: Any, plan_file: Callable[..., str], text: str, said: str
) -> None:
    shell.good("asset-type", "add", PUMP)
    assert said in shell.refused("plan", "create", plan_file(text))
    assert behind.store.plans.list_plans() == []
