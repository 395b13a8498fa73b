"""Sites, webhooks, the audit trail, and what is wrong with a home folder or a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.api.cli.changes import PUMP, actions


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


def test_of_a_webhook_that_was_sent_nothing_nothing_is_said_to_have_arrived(
    shell: Any, behind: Any, a_model: Callable[..., list[str]]
) -> None:
    a_model(behind, f"hook-{behind.store.engine.dialect.name}", 0.9)
    number = behind.store.events.span()[1]
    shell.good("webhook", "add", "https://watch.example.com/hook")
    header, line = shell.good("webhook", "list").splitlines()
    assert "GOES ON AFTER" in header and "ARRIVED" not in header
    assert line[header.index("GOES ON AFTER"):].split()[:2] == [str(number), "-"]


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
