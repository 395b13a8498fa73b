"""What is shown once goes to the output alone, what is asked for is what is made, and what is written is private."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from api.cli.main import main
from services.plant_simulator.assets import builtin_asset_type_path
from tests.ports import free_port

PUMP = str(builtin_asset_type_path("triplex-pump"))
CODE = ("--asset-type", "triplex-pump", "--certificate-sha256", "0" * 64)


def test_the_secret_of_a_webhook_is_the_output_and_its_kinds_are_those_that_were_asked_for(
    shell: Any, behind: Any
) -> None:
    kinds = ("--kind", "run.failed", "--kind", "site.silent")
    code, out, err = shell.run("webhook", "add", "https://watch.example.com/hook", *kinds)
    (made,) = behind.store.webhooks.list_webhooks()
    secret = out.strip()
    assert (code, out.count("\n"), made.kinds) == (0, 1, ("run.failed", "site.silent"))
    assert secret not in err and made.webhook_id in err and made.webhook_id not in out
    assert "run.failed" in shell.good("webhook", "list") and secret not in shell.good("webhook", "list")
    assert shell.read("webhook", "add", "https://watch.example.com/all")["webhook"]["kinds"] == []
    assert "all" in shell.good("webhook", "list")
    shell.good("webhook", "remove", made.webhook_id, "--reason", "nobody reads it")
    assert behind.store.audit.list_events(limit=1)[0].reason == "nobody reads it"


def test_a_test_message_that_did_not_arrive_ends_with_1(shell: Any) -> None:
    made = shell.read("webhook", "add", f"http://127.0.0.1:{free_port()}/")["webhook"]["webhook_id"]
    code, out, _ = shell.run("webhook", "test", made)
    assert code == 1 and out.startswith("it did not arrive: no answer")


def test_a_code_is_the_command_alone_and_replaces_no_key_unless_that_is_asked_for(
    shell: Any, behind: Any, new_key: Callable[[], str]
) -> None:
    shell.good("asset-type", "add", PUMP)
    code, out, err = shell.run("site", "enrol-code", "plant-7", *CODE)
    (record,) = behind.store.enrolment_codes.list_codes("plant-7")
    assert (code, out.count("\n"), record.replaces_key) == (0, 1, False) and out.startswith("ballast-site enrol --url")
    assert record.code_id in err and out.strip() not in err and "blse_" not in err
    shell.good("site", "revoke-code", "plant-7", record.code_id, "--reason", "went astray")
    assert behind.store.audit.list_events(limit=1)[0].reason == "went astray"
    shell.good("site", "enrol", "plant-8", "--key", new_key())
    assert "enrolled" in shell.refused("site", "enrol-code", "plant-8", *CODE)
    shell.good("site", "enrol-code", "plant-8", *CODE, "--replace-key")
    assert behind.store.enrolment_codes.list_codes("plant-8")[0].replaces_key


@pytest.mark.parametrize(("text", "lasts"), [("2d", timedelta(days=2)), ("12h", timedelta(hours=12))])
def test_a_former_key_holds_as_long_as_was_said(
    shell: Any, behind: Any, new_key: Callable[[], str], text: str, lasts: timedelta
) -> None:
    shell.good("site", "enrol", "plant-7", "--key", new_key())
    told = shell.read("site", "rotate-key", "plant-7", "--key", new_key(), "--overlap", text, "--reason", "yearly")
    until, begun = (datetime.fromisoformat(told[name]) for name in ("former_key_until", "updated_at"))
    assert abs(until - begun - lasts) < timedelta(minutes=1)


@pytest.fixture
def open_to_all() -> Iterator[None]:
    former = os.umask(0o022)
    yield
    os.umask(former)


def test_a_database_and_its_folder_are_for_their_owner_alone(open_to_all: None, tmp_path: Path) -> None:
    home = tmp_path / "new"
    assert main(["migrate", "--home", str(home)]) == 0
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (home, home / "ballast.db")}
    assert modes == {"new": 0o700, "ballast.db": 0o600}


def test_where_the_database_is_elsewhere_no_file_is_made_at_home(open_to_all: None, tmp_path: Path) -> None:
    home, rows = tmp_path / "new", tmp_path / "rows.db"
    home.mkdir(mode=0o700)
    (home / "ballast.toml").write_text(f'database_url = "sqlite:///{rows}"\n')
    assert main(["migrate", "--home", str(home)]) == 0
    assert rows.exists() and not (home / "ballast.db").exists()
