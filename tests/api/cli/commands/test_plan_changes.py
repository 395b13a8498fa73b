"""``ballast plan``: change, compare, put away, delete; what is shown can be given again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.plant_simulator.assets import builtin_asset_type_path
from services.process.process_lock import held
from tests.api.conftest import a_curve

PUMP = str(builtin_asset_type_path("triplex-pump"))


@pytest.fixture
def made(shell: Any, plan_file: Callable[..., str]) -> Callable[..., str]:
    shell.good("asset-type", "add", PUMP)
    assert noted(shell, "plan", "create", plan_file()) == ""
    return plan_file


def test_a_plan_is_compared_updated_and_its_history_told(shell: Any, behind: Any, made: Callable[..., str]) -> None:
    changed = made("max_rounds = 7\n[spec]\nradius = { rule = 'fixed', value = 0.5 }")
    diff = shell.good("plan", "diff", changed)
    assert "max_rounds: 100 -> 7\n" in diff and 'spec.radius.rule: "samples" -> "fixed"\n' in diff
    assert shell.read("plan", "diff", changed)["max_rounds"] == {"before": 100, "after": 7}
    assert behind.store.plans.get("nightly").version == 1
    said = shell.good("plan", "update", changed, "--reason", "too slow")
    assert said == f"plan nightly version 2\n{diff}"
    assert shell.good("plan", "diff", changed) == ""
    assert shell.good("plan", "update", changed) == "plan nightly version 2: nothing changes\n"
    assert shell.good("plan", "diff", "nightly") == diff
    assert shell.good("plan", "diff", "nightly", "--from", "2", "--to", "1").endswith("max_rounds: 7 -> 100\n")
    assert "no version 3, but 1 to 2" in shell.refused("plan", "diff", "nightly", "--to", "3")
    for end in ("--from", "--to"):
        assert shell.run("plan", "diff", "nightly", end, "0")[0] == 2, "there is no such version"
        assert "give its name, not a file" in shell.refused("plan", "diff", changed, end, "1")
    assert "too slow" in shell.good("plan", "history", "nightly")
    assert [each["version"] for each in shell.read("plan", "history", "nightly")] == [1, 2]
    assert behind.store.audit.list_events()[0].after["max_rounds"] == 7


def noted(shell: Any, *arguments: str) -> str:
    """What a command that must do what was asked says beside its result."""
    code, out, err = shell.run(*arguments)
    assert code == 0 and "note:" not in out, (out, err)
    return str(err)


def test_a_run_that_ends_before_its_gate_holds_is_noted(shell: Any, made: Callable[..., str]) -> None:
    said = noted(shell, "plan", "update", made("gap = 0.02"))
    assert said.startswith("ballast: note: a run ends at a gap of 0.02, and the gate max_gap makes no version above")
    for fits in ("gap = 0.02\n[gates]\nmax_gap = 0.02", "gap = 1e-4"):
        assert noted(shell, "plan", "update", made(fits)) == ""
    late = made("gap = 0.02").replace("nightly", "later")
    Path(late).write_text('name = "later"\nasset_type = "triplex-pump"\ngap = 0.02\n')
    assert "note: " in noted(shell, "plan", "create", late)


def test_a_gate_that_needs_each_plants_own_scores_is_noted_on_sums_whenever_the_plan_is_given_or_run(
    shell: Any, made: Callable[..., str], tmp_path: Path
) -> None:
    said = "ballast: note: on sums min_site_f1 holds only where every plant tells its own scores"
    gates = "[gates]\nmin_site_f1 = 0.7"
    assert noted(shell, "plan", "update", made(gates)).startswith(said)
    new = tmp_path / "new.toml"
    new.write_text(f'name = "new"\nasset_type = "triplex-pump"\n{gates}\n')
    for arguments in (("create", str(new), "--dry-run"), ("create", str(new)), ("trigger", "new")):
        code, out, err = shell.run("plan", *arguments, "--json")
        assert code == 0 and said in err
        (notice,) = json.loads(out)["notices"]
        assert f"ballast: note: {notice}\n" in err
    assert noted(shell, "plan", "update", made(f'reveal = "each site"\n{gates}')) == ""


def test_what_is_shown_can_be_given_again(shell: Any, made: Callable[..., str], tmp_path: Path) -> None:
    fair = "[[gates.fairness]]\nindex = 'gini'\nat_most = 0.3"
    shell.good("plan", "update", made(f"[spec]\nlabel_flip_cost = inf\n{fair}"))
    shown = shell.good("plan", "show", "nightly")
    assert "=None" not in shown and "(" not in shown
    again = tmp_path / "again.toml"
    again.write_text(shown)
    assert "nothing changes" in shell.good("plan", "update", str(again))
    again = tmp_path / "again.json"
    again.write_text(json.dumps(shell.read("plan", "show", "nightly")["plan"] | {"gates": {"max_gap": None}}))
    assert "gates.max_gap: 0.001 -> null" in shell.good("plan", "update", str(again))
    assert "# gates.max_gap is not asked" in shell.good("plan", "show", "nightly")


def test_a_plan_is_put_away_and_deleted(shell: Any, made: Callable[..., str]) -> None:
    assert shell.good("plan", "archive", "nightly") == "plan nightly is archived\n"
    assert shell.read("plan", "list") == []
    assert "nightly" in shell.good("plan", "list", "--archived")
    assert shell.good("plan", "show", "nightly").splitlines()[0].endswith(" UTC, archived")
    shell.good("plan", "pause", "nightly")
    assert shell.good("plan", "show", "nightly").splitlines()[0].endswith(" UTC, paused, archived")
    assert "restore it first" in shell.refused("plan", "trigger", "nightly")
    shell.good("plan", "restore", "nightly")
    assert shell.good("plan", "delete", "nightly", "--reason", "a mistake") == "plan nightly is deleted\n"
    assert "no plan" in shell.refused("plan", "show", "nightly")
    made()
    shell.good("plan", "create", made())
    shell.run("plan", "trigger", "nightly")
    assert "archive it instead" in shell.refused("plan", "delete", "nightly")
    assert "unfinished run" in shell.refused("plan", "archive", "nightly")


def test_a_misspelt_key_says_which_was_meant(shell: Any, made: Callable[..., str]) -> None:
    assert "max_round: there is no such key; did you mean max_rounds?" in shell.refused(
        "plan", "update", made("max_round = 3")
    )


def test_a_trigger_that_nobody_hears_says_so(shell: Any, made: Callable[..., str]) -> None:
    code, out, err = shell.run("plan", "trigger", "nightly")
    assert code == 0 and f"run {out.strip()} waits: no flows process" in err
    shell.good("run", "cancel", out.strip())
    shell.good("plan", "create", made(name="other"))
    with held(shell.home / "flows.lock"):
        code, out, err = shell.run("plan", "trigger", "other")
    assert (code, err) == (0, "")


@pytest.mark.parametrize("sensors", [1, 2])
def test_a_new_plan_for_a_target_alone_learns_it(
    shell: Any, behind: Any, made: Callable[..., str], tmp_path: Path, sensors: int
) -> None:
    """Of one sensor, too, of which there are no products."""
    features = "".join(f'[[features]]\nname = "heat_{n}"\nunit = "K"\nlow = 0.0\nhigh = 9.0\n' for n in range(sensors))
    target = '[target]\nname = "wear"\nunit = "mm"\nlow = 0.0\nhigh = 5.0\n'
    file = tmp_path / "new.toml"
    file.write_text(f'name = "bearing"\nversion = 1\n{features}{target}')
    shell.good("asset-type", "add", str(file))
    file.write_text(shell.good("plan", "init", "fresh", "--asset-type", "bearing"))
    shell.good("plan", "create", str(file))
    plan = behind.store.plans.get("fresh").plan
    assert plan.spec.loss.name == "pinball" and plan.tuning == "auto"
    said = shell.read("plan", "init", "again", "--asset-type", "bearing")
    assert said["plan"]["spec"]["loss"]["name"] == "pinball" and "rare faults" not in said["text"]


def test_a_new_plan_tunes_and_what_a_tuning_is_can_be_shown_and_given_again(
    shell: Any, behind: Any, made: Callable[..., str], tmp_path: Path
) -> None:
    file = tmp_path / "new.toml"
    said = shell.refused("plan", "init", "Pump 7", "--asset-type", "triplex-pump")
    assert said.startswith("ballast: plan: name: a name has 1 to 40 lower-case letters")
    file.write_text(shell.good("plan", "init", "fresh", "--asset-type", "triplex-pump"))
    shell.good("plan", "create", str(file))
    plans = behind.store.plans
    assert plans.get("fresh").plan.tuning == "auto" and plans.get("nightly").plan.tuning is None
    table = "[tuning]\nradius = [1.0, 10.0]\nlifts = ['none', { kind = 'spline', segments = 4 }]\nfolds = 4"
    shell.good("plan", "update", made(table))
    file.write_text(shell.good("plan", "show", "nightly"))
    assert shell.good("plan", "update", str(file)).endswith("nothing changes\n")
    assert "candidates at least" in shell.refused("plan", "update", made("[tuning]\nradius = [2.0]"))


def test_a_plans_terms_are_chosen_by_a_run_of_their_own(shell: Any, behind: Any, made: Callable[..., str]) -> None:
    assert 'write tuning = "auto" into it' in shell.refused("plan", "tune", "nightly")
    shell.good("plan", "update", made('tuning = "auto"'))
    code, out, err = shell.run("plan", "tune", "nightly", "--reason", "new pumps")
    run_id = out.strip()
    assert code == 0 and f"run {run_id} waits: no flows process" in err
    assert behind.store.audit.list_events(limit=1)[0].reason == "new pumps"
    assert run_id in shell.refused("plan", "tune", "nightly")
    runs = behind.store.runs
    assert runs.get_run(run_id).plan.tunes_only and "terms chosen" not in shell.good("run", "show", run_id)
    runs.begin_run(run_id, ())
    runs.set_tuned(run_id, runs.get_run(run_id).plan.model_copy(update={"tuned": a_curve()}), ())
    runs.finish_run(run_id, "completed", "tuned, nothing was trained")
    shown = " ".join(shell.good("run", "show", run_id).split())
    assert "for this run alone tune_only = true" in shown
    assert "terms chosen x3, 1, spline 6 why best of 2 with 0.9" in shown
    assert "candidates x1, 1, no lift 0.8; x3, 1, spline 6 0.9 scores macro F-1" in shown
    assert "tuning cost 15 rounds, 4000 bytes to the plants, 5000 back" in shown
    assert shell.read("run", "show", run_id)["plan"]["tuned"]["candidates"][1]["score"] == 0.9
