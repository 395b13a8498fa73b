from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from api.cli.token import read_end
from services.contracts.access.identity import Role
from services.identity.tokens import check, token_id_of
from services.plant_simulator.assets import builtin_asset_type_path
from tests.api.conftest import SITES, a_plan

NOW = datetime(2031, 1, 1, 12, tzinfo=UTC)
PUMP = str(builtin_asset_type_path("triplex-pump"))


def actions(behind: Any) -> list[tuple[str, str, str]]:
    events = behind.store.audit.list_events()
    assert all(event.actor.startswith("cli:") and event.role is Role.ADMINISTRATOR for event in events)
    return [(event.action, event.target, event.reason) for event in events]


def test_a_token_is_made_listed_and_revoked(shell: Any, behind: Any) -> None:
    code, out, err = shell.run("token", "create", "--role", "operator", "--name", "shift lead", "--days", "7")
    secret = out.strip()
    assert (code, out.count("\n")) == (0, 1)
    assert "shift lead" in err and secret not in err
    token = check(secret, behind.store.tokens.find(token_id_of(secret)), datetime.now(UTC))
    assert token.role is Role.OPERATOR
    made = shell.read("token", "create", "--role", "viewer", "--name", "other")
    assert token_id_of(made["token"]) == made["token_id"]
    assert [item["name"] for item in shell.read("token", "list")] == ["other", "shift lead"]
    assert secret not in shell.good("token", "list")
    shell.good("token", "revoke", token.token_id, "--reason", "left")
    assert shell.read("token", "list")[1]["revoked_at"] is not None
    assert [(action, reason) for action, _, reason in actions(behind)] == [
        ("token.revoke", "left"), ("token.create", ""), ("token.create", ""),
    ]
    assert "other" in shell.refused("token", "create", "--role", "viewer", "--name", "other")
    assert "no token" in shell.refused("token", "revoke", "0" * 12)


@pytest.mark.parametrize(("text", "end"), [
    ("12h", NOW + timedelta(hours=12)), ("90d", NOW + timedelta(days=90)),
    ("2031-02-03", datetime(2031, 2, 3, tzinfo=UTC)), ("2031-02-03T04:00+02:00", datetime(2031, 2, 3, 2, tzinfo=UTC)),
])
def test_ends_of_tokens_are_read(text: str, end: datetime) -> None:
    assert read_end(text, NOW) == end


def test_a_token_with_an_end_and_scopes(shell: Any) -> None:
    made = shell.read("token", "create", "--role", "viewer", "--name", "x", "--expires", "12h", "--scope", "diagnose")
    lifetime = datetime.fromisoformat(made["expires_at"]) - datetime.fromisoformat(made["created_at"])
    assert abs(lifetime - timedelta(hours=12)) < timedelta(minutes=1)
    assert made["scopes"] == ["diagnose"]
    for text in ("soon", "12", "2020-01-01", "1.5d"):
        refused = shell.refused("token", "create", "--role", "viewer", "--name", "y", "--expires", text)
        assert "no end" in refused or "must be positive" in refused


@pytest.mark.parametrize(("text", "why"), [
    ("400d", "is too far away"), ("31d", "is too far away"), ("721h", "is too far away"),
    ("2099-01-01", "is too far away"), ("0h", "is over already"), ("2020-01-01", "is over already"),
    ("999999999d", "is later than any date"),
])
def test_a_code_that_may_not_hold_so_long_is_told_how_long_it_may(shell: Any, text: str, why: str) -> None:
    said = shell.refused("site", "enrol-code", "plant-7", "--expires", text)
    assert f"{text} {why}" in said and "7d" in said or "90d" in said
    assert "expires_hours" not in said and len(said.splitlines()) == 1


def test_a_site_is_enrolled_suspended_activated_and_removed(
    shell: Any, behind: Any, new_key: Callable[[], str]
) -> None:
    assert "add it first" in shell.refused("site", "enrol", "p1", "--key", new_key(), "--asset-type", "triplex-pump")
    assert "triplex-pump version 1: 14 features" in shell.good("asset-type", "add", PUMP)
    assert [item["asset_type"]["name"] for item in shell.read("asset-type", "list")] == ["triplex-pump"]
    key = new_key()
    assert "p1 is enrolled" in shell.good("site", "enrol", "p1", "--key", key, "--asset-type", "triplex-pump")
    assert "already" in shell.refused("site", "enrol", "p1", "--key", new_key())
    changed = shell.good("site", "rotate-key", "p1", "--key", new_key(), "--overlap", "0h", "--reason", "lost")
    assert "p1 has another key" in changed
    assert "`ballast up` was never run" in shell.refused("site", "rotate-coordinator-key")
    assert "belongs to site p1" in shell.refused("site", "enrol", "p2", "--key", key)
    assert "56 characters" in shell.refused("site", "enrol", "p2", "--key", "word")
    assert "site_id" in shell.refused("site", "enrol", "P 2", "--key", new_key())
    for action, status in (("suspend", "suspended"), ("activate", "active"), ("remove", "removed")):
        assert shell.good("site", action, "p1", "--reason", "because") == f"site p1 is {status}\n"
    assert [site["status"] for site in shell.read("site", "list")] == ["removed"]
    assert "removed" in shell.good("site", "list")
    assert "nobody" in shell.refused("site", "remove", "nobody")
    assert actions(behind) == [
        ("site.remove", "site:p1", "because"), ("site.activate", "site:p1", "because"),
        ("site.suspend", "site:p1", "because"), ("site.rotate_key", "site:p1", "lost"), ("site.enrol", "site:p1", ""),
        ("asset_type.put", "asset-type:triplex-pump", ""),
    ]


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


def test_files_that_are_not_there_or_no_toml_are_refused(shell: Any, tmp_path: Path) -> None:
    missing = str(tmp_path / "nothing.toml")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    for command in (("plan", "create"), ("asset-type", "add")):
        assert missing in shell.refused(*command, missing)
        assert str(tmp_path) in shell.refused(*command, str(tmp_path))
        assert str(binary) in shell.refused(*command, str(binary))


def test_unknown_things_are_one_line(shell: Any) -> None:
    for command in (
        ("plan", "show", "nobody"), ("plan", "trigger", "nobody"), ("run", "show", "0" * 32), ("run", "cancel", "x"),
        ("run", "rounds", "x"), ("model", "show", "nobody"), ("model", "show", "pumps", "99"),
        ("model", "fairness", "nobody"), ("model", "fairness", "pumps", "99"),
        ("model", "rollback", "nobody", "--reason", "bad"),
    ):
        shell.refused(*command)


def test_models_are_shown_promoted_and_rolled_back(shell: Any, behind: Any) -> None:
    assert [model["name"] for model in shell.read("model", "list") if model["name"] == "pumps"] == ["pumps"]
    assert shell.read("model", "show", "pumps")["versions"][0]["version"] == "1"
    assert shell.read("model", "show", "pumps", "champion")["certified_gap"] == 8e-4
    assert "plant-east" in shell.good("model", "show", "pumps", "1")
    fair = shell.good("model", "fairness", "pumps", "1")
    assert "WORST-CASE RISK" in fair and "Gini coefficient" in fair and "plant-west" in fair
    assert "figures of 2 sites only" in fair and fair == shell.good("model", "fairness", "pumps")
    (indices,) = shell.read("model", "fairness", "pumps", "champion")["indices"]
    assert (indices["relative_unfairness"], indices["gini"]) == (1.0, 0.0)
    assert "champion already" in shell.refused("model", "promote", "pumps", "--reason", "again")
    assert "no champion before" in shell.refused("model", "rollback", "pumps", "--reason", "bad")
    code, _, err = shell.run("model", "rollback", "pumps")
    assert (code, "--reason" in err) == (2, True)
    assert behind.store.audit.list_events() == []


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


def test_of_a_webhook_that_was_sent_nothing_nothing_is_said_to_have_arrived(
    shell: Any, behind: Any, a_model: Callable[..., list[str]]
) -> None:
    a_model(behind, f"hook-{behind.store.engine.dialect.name}", 0.9)
    number = behind.store.events.span()[1]
    shell.good("webhook", "add", "https://watch.example.com/hook")
    header, line = shell.good("webhook", "list").splitlines()
    assert "GOES ON AFTER" in header and "ARRIVED" not in header
    assert line[header.index("GOES ON AFTER"):].split()[:2] == [str(number), "-"]


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


def test_the_audit_trail_is_listed_and_verified(shell: Any, behind: Any) -> None:
    shell.good("asset-type", "add", PUMP)
    assert shell.read("audit", "list")[0]["action"] == "asset_type.put"
    assert "asset_type.put" in shell.good("audit", "list", "--limit", "1", "--target", "asset-type:triplex-pump")
    assert "1 events" in shell.good("audit", "verify")
    assert shell.read("audit", "verify")["ok"] is True


def test_a_trail_that_was_changed_does_not_verify(shell: Any, behind: Any) -> None:
    from sqlalchemy import text

    shell.good("asset-type", "add", PUMP)
    with behind.store.engine.execution_options(ballast_writes=True).begin() as connection:
        connection.execute(text("UPDATE audit_head SET number = 7"))
    assert "does not hold" in shell.refused("audit", "verify")
    assert shell.run("audit", "verify", "--json")[0] == 1


def test_migrate_makes_a_database_and_without_one_commands_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from api.cli.main import main

    home = str(tmp_path / "new")
    assert main(["token", "list", "--home", home]) == 1
    said = capsys.readouterr().err
    assert "`ballast migrate` makes it" in said and "--home or BALLAST_HOME" in said
    assert not os.path.exists(home)
    for _ in range(2):
        assert main(["migrate", "--home", home]) == 0
        assert "schema" in capsys.readouterr().out
    assert main(["token", "list", "--home", home, "--json"]) == 0
    assert capsys.readouterr().out == "[]\n"


def test_a_wrong_home_is_told_and_nothing_is_made_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from api.cli.main import main

    nowhere = tmp_path / "nowhere"
    assert main(["verify", "pumps", "--home", str(nowhere)]) == 1
    assert "--home or BALLAST_HOME" in capsys.readouterr().err and not nowhere.exists()


def test_settings_that_do_not_fit_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from api.cli.main import main

    for text in ("colour = 1", "[api]\nport = 99999", "= no toml", 'database_url = "mysql://x"'):
        (tmp_path / "ballast.toml").write_text(text)
        assert main(["token", "list", "--home", str(tmp_path)]) == 1
        err = capsys.readouterr().err
        assert err.startswith("ballast: ") and err.count("\n") == 1


def test_a_read_only_database_is_one_line(shell: Any, behind: Any) -> None:
    if behind.store.engine.dialect.name == "postgresql":
        from sqlalchemy import text

        with behind.store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            name = connection.scalar(text("SELECT current_database()"))
            connection.execute(text(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on'))
    else:
        toml = shell.home / "ballast.toml"
        toml.write_text(toml.read_text().replace('.db"\n', '.db?mode=ro"\n', 1))
    assert "read-only" in shell.refused("token", "create", "--role", "viewer", "--name", "x")
