"""What is asked for by a flag is what is done, and what is left out by a list is left out."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from api.cli.commands.plan import _override
from api.cli.commands.token import read_end
from services.contracts.access.identity import Role
from services.contracts.errors import ConflictError
from services.plant_simulator.assets import builtin_asset_type
from services.round_store.operation.retention import Forgettable
from tests.api.conftest import a_plan
from tests.versions import a_round, an_answer

NOW = datetime(2031, 1, 1, 12, tzinfo=UTC)


def test_a_date_begins_in_utc_on_a_host_that_is_elsewhere(elsewhere: None) -> None:
    assert read_end("2031-02-03", NOW) == datetime(2031, 2, 3, tzinfo=UTC)


def test_what_is_asked_for_of_an_export_and_an_unlearning_is_what_is_done(
    shell: Any, behind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Any, ...]] = []

    def made(_backend: Any, _actor: Any, *given: Any) -> Any:
        asked.append(given)
        raise ConflictError("not now")

    monkeypatch.setattr("api.models.exports.export", made)
    monkeypatch.setattr("api.models.unlearning.unlearn", made)
    export = ("model", "export", "pumps", "1", "--format", "c99", "--out", str(shell.home / "x"))
    for more in ((), ("--precision", "float")):
        shell.refused(*export, *more)
    assert asked == [("pumps", "1", "c99", "double"), ("pumps", "1", "c99", "float")]
    assert not (shell.home / "x").exists()
    asked.clear()
    for words in ((), ("--purge", "now", "--reason", "sold")):
        shell.refused("model", "unlearn", "pumps", "--site", "east", *words)
    assert [(name, each.site, each.purge, each.reason) for name, each in asked] == [
        ("pumps", "east", "promotion", "the plant left"), ("pumps", "east", "now", "sold"),
    ]


@pytest.mark.parametrize(("out", "why"), [("none/x", "No such file or directory"), (".", "Is a directory")])
def test_a_file_that_cannot_be_written_is_one_line(shell: Any, tmp_path: Path, out: str, why: str) -> None:
    words = ("model", "export", "pumps", "1", "--format", "c99", "--out", str(tmp_path / out))
    assert f"cannot be written: {why}" in shell.refused(*words)


def test_an_export_that_a_full_disk_stops_leaves_the_one_before(
    shell: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = tmp_path / "pump.h"
    header.write_text("the one before")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    said = shell.refused("model", "export", "pumps", "1", "--format", "c99", "--out", str(header))
    assert "cannot be written: No space left on device" in said and header.read_text() == "the one before"


@pytest.mark.parametrize(("flags", "dry"), [((), False), (("--dry-run",), True)])
def test_what_is_old_is_dropped_and_only_told_where_that_is_asked(
    shell: Any, behind: Any, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], dry: bool
) -> None:
    settings = shell.home / "ballast.toml"
    settings.write_text(settings.read_text() + "\n[retention]\nevents_days = 7\n")
    asked: list[Any] = []

    def tidy(_store: Any, settings: Any, **given: Any) -> Forgettable:
        asked.append((settings.events_days, given["dry_run"], given["role"], given["actor"].startswith("cli:")))
        return Forgettable(runs=("a", "b"), rounds=40, events=3)

    monkeypatch.setattr("api.cli.commands.retention.tidy", tidy)
    said = "would be dropped" if dry else "dropped"
    assert shell.good("retention", "run", *flags) == f"{said}: 40 rounds of 2 runs, 3 events\n"
    assert shell.read("retention", "run", *flags) == {"runs": ["a", "b"], "rounds": 40, "events": 3}
    assert asked == [(7, dry, Role.ADMINISTRATOR, True)] * 2


def test_the_audit_trail_is_listed_as_it_is_asked_for(shell: Any, behind: Any) -> None:
    for number in range(3):
        behind.store.audit.append(actor=f"a{number % 2}", role=None, action="noted", target=f"x:{number}")

    def targets(*words: str) -> list[str]:
        return [each["target"] for each in shell.read("audit", "list", *words)]

    assert targets() == ["x:2", "x:1", "x:0"]
    assert targets("--actor", "a0") == ["x:2", "x:0"] and targets("--target", "x:1") == ["x:1"]
    assert targets("--limit", "2") == ["x:2", "x:1"] and targets("--limit", "1", "--offset", "1") == ["x:1"]
    assert targets("--offset", "2") == ["x:0"]
    assert "NUMBER  AT" in shell.good("audit", "list") and shell.good("audit", "verify").startswith("3 events, none")
    for wrong in (("--limit", "0"), ("--offset", "-1")):
        assert shell.run("audit", "list", *wrong)[0] == 2


def test_why_somebody_did_what_is_kept(shell: Any, behind: Any, plan_file: Callable[..., str]) -> None:
    """Each action of a plan and its run with a reason of its own."""
    behind.store.asset_types.add(builtin_asset_type("triplex-pump"))
    shell.good("plan", "create", plan_file(), "--paused")
    assert behind.store.plans.get("nightly").paused
    run_id = shell.good("plan", "trigger", "nightly", "--reason", "because of trigger").strip()
    shell.good("run", "cancel", run_id, "--reason", "because of cancel")
    behind.store.runs.finish_run(run_id, "cancelled", "asked for")
    for action in ("resume", "pause", "archive", "restore"):
        shell.good("plan", action, "nightly", "--reason", f"because of {action}")
    shell.good("plan", "create", plan_file(name="other"))
    shell.good("plan", "delete", "other", "--reason", "because of delete")
    found = [(event.action.partition(".")[2], event.reason) for event in behind.store.audit.list_events()[::-1]]
    said = ["trigger", "cancel", "resume", "pause", "archive", "restore", "delete"]
    assert [each for each in found if each[0] != "create"] == [(action, f"because of {action}") for action in said]


def test_a_plan_that_is_only_checked_is_not_there(shell: Any, behind: Any, plan_file: Callable[..., str]) -> None:
    behind.store.asset_types.add(builtin_asset_type("triplex-pump"))
    assert "nothing was stored" in shell.good("plan", "create", plan_file(), "--dry-run")
    assert behind.store.plans.list_plans() == []
    shell.good("plan", "create", plan_file())
    assert "nothing was stored" in shell.good("plan", "update", plan_file("max_rounds = 7"), "--dry-run")
    assert behind.store.plans.get("nightly").version == 1
    assert behind.store.plans.get("nightly").paused is False


def test_runs_are_listed_and_told_as_it_is_asked_for(shell: Any, behind: Any) -> None:
    store = behind.store
    store.asset_types.add(builtin_asset_type("triplex-pump"))
    made = [store.runs.create_run(store.plans.create(a_plan(name)).plan).run_id for name in ("one", "two", "three")]
    store.runs.begin_run(made[0], ())
    statuses = {"a": "accepted", "b": "open", "c": "late"}
    answers = [an_answer(site, status=status) for site, status in statuses.items()]
    for number in (1, 2):
        store.runs.commit_round(a_round(made[0], number, *answers[:number + 1]), {"point": np.zeros(1)})
    assert [each["run_id"] for each in shell.read("run", "list", "--limit", "2")] == [made[2], made[1]]
    assert [each["run_id"] for each in shell.read("run", "list", "--status", "running")] == [made[0]]
    header, first, second = shell.good("run", "rounds", made[0]).splitlines()
    assert header.split()[-4:] == ["ACCEPTED", "AT", "WORK", "MISSING"]
    assert first.split()[-3:] == ["1", "b", "-"] and second.split()[-3:] == ["1", "b", "c"]
    shown = shell.good("run", "show", made[0])
    assert shown.count("question of round") == 1 and "b (question of round 2, " in shown, "of the last round alone"


def test_where_the_flows_may_run_elsewhere_they_are_not_said_to_be_missing(
    shell: Any, behind: Any, plan_file: Callable[..., str]
) -> None:
    behind.store.asset_types.add(builtin_asset_type("triplex-pump"))
    shell.good("plan", "create", plan_file())
    settings = shell.home / "ballast.toml"
    settings.write_text(settings.read_text() + '\n[prefect]\napi_url = "http://prefect.example:4200/api"\n')
    code, run_id, aside = shell.run("plan", "trigger", "nightly")
    assert (code, aside) == (0, "")
    assert shell.run("run", "cancel", run_id.strip()) == (0, f"run {run_id.strip()} will stop\n", "")


@pytest.mark.parametrize(("text", "field", "value"), [
    ("max_rounds=50", "max_rounds", 50), (" gap = 1e-3", "gap", 1e-3), ("auto_promote=false", "auto_promote", False),
    ("method=fdr-sm", "method", "fdr-sm"), ("cron=null", "cron", "null"), ("sites=[1]", "sites", "[1]"),
    ("x=", "x", ""), ("x=a=b", "x", "a=b"),
])
def test_a_field_for_one_run_is_a_number_a_truth_or_a_text(text: str, field: str, value: object) -> None:
    found = _override(text)
    assert found == (field, value) and type(found[1]) is type(value)


def test_what_no_reader_of_json_takes_is_a_text() -> None:
    for value in ("9" * 5000, "[" * 100_000):
        assert _override(f"gap={value}") == ("gap", value)


def test_a_version_of_a_plan_is_compared_with_the_one_before_it(shell: Any, behind: Any) -> None:
    behind.store.asset_types.add(builtin_asset_type("triplex-pump"))
    behind.store.plans.create(a_plan("nightly"))
    for rounds in (7, 9):
        behind.store.plans.update(a_plan("nightly", max_rounds=rounds))
    assert shell.good("plan", "diff", "nightly") == "max_rounds: 7 -> 9\n"
    assert shell.good("plan", "diff", "nightly", "--to", "2") == "max_rounds: 100 -> 7\n"
    assert shell.good("plan", "diff", "nightly", "--from", "1") == "max_rounds: 100 -> 9\n"


def test_a_field_is_set_once_for_a_run(shell: Any, behind: Any) -> None:
    behind.store.asset_types.add(builtin_asset_type("triplex-pump"))
    behind.store.plans.create(a_plan("nightly"))
    both = ("--set", "gap=0.1", "--set", "max_rounds=7")
    said = shell.refused("plan", "trigger", "nightly", *both, "--set", "gap=0.2")
    assert said == "ballast: --set gives gap twice: give it once" and behind.store.runs.list_runs() == []
    assert shell.read("plan", "trigger", "nightly", *both)["plan"]["overrides"] == {"gap": 0.1, "max_rounds": 7}


def test_a_stolen_key_has_no_overlap(shell: Any) -> None:
    code, _, err = shell.run("site", "rotate-coordinator-key", "--stolen", "--overlap", "1h")
    assert code == 2 and "not allowed with argument" in err


@pytest.mark.parametrize("words", [("rotate-coordinator-key",), ("rotate-key", "plant-7", "--key", "U")])
def test_a_former_key_holds_thirty_days_at_most(shell: Any, words: tuple[str, ...]) -> None:
    for given in ("31d", "721h"):
        code, _, err = shell.run("site", *words, "--overlap", given)
        assert code == 2 and f"a former key holds 30 days at most, not {given}" in err
    assert shell.run("site", *words, "--overlap", "720h")[0] == 1, "refused for other reasons alone"
