"""What ``ballast backup`` and ``ballast restore`` ask for, hand on and tell; what they do is tested in ``recovery``."""

from __future__ import annotations

import getpass
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from api.cli.commands import backup
from api.cli.main import main
from api.cli.unlearned_again import unlearn_again
from api.recovery.backup import Summary
from api.recovery.restore import Restored
from services.backup.archive import Manifest

WORD = "a horse of another colour"
MADE = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


class Terminal(StringIO):
    """A standard input at which somebody types."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is typed at the terminal, one after the other."""
    words = list[str]()
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(getpass, "getpass", lambda _: words.pop(0))
    return words


class Backend:
    """No service: nothing is looked at."""

    is_open = False

    def __enter__(self) -> Backend:
        self.is_open = True
        return self

    def __exit__(self, *_: object) -> None:
        self.is_open = False


@pytest.fixture
def sealed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Path, str]]]:
    """The files that were to be written, and under which passphrases."""
    asked, backend = list[tuple[Path, str]](), Backend()

    def make(given: object, file: Path, passphrase: str) -> Summary:
        assert given is backend and backend.is_open
        asked.append((file, passphrase))
        return Summary(rows=3, versions=2, artifacts=4, home_files=5, bytes=1_234_567, notes=["the log is not in it"])

    monkeypatch.setattr(backup, "open_backend", lambda _: backend)
    monkeypatch.setattr("api.recovery.backup.make_backup", make)
    yield asked
    assert not backend.is_open


def test_a_backup_says_what_is_in_it_and_what_to_know_of_it(
    sealed: list[tuple[Path, str]], typed: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, command = tmp_path / "b", ["backup", str(tmp_path / "b"), "--home", str(tmp_path)]
    typed += [WORD] * 4
    assert main(command) == 0 and main([*command, "--json"]) == 0
    said, _, document = capsys.readouterr().out.partition("{")
    assert said == (
        f"{file}: 1.2 MB; 3 rows, 2 model versions, 4 artifacts, 5 files of the home folder\n"
        "note: the log is not in it\n"
    )
    assert json.loads("{" + document) == {
        "file": str(file), "rows": 3, "versions": 2, "artifacts": 4, "home_files": 5, "bytes": 1_234_567,
        "notes": ["the log is not in it"],
    }
    assert sealed == [(file, WORD)] * 2 and typed == []


@pytest.mark.parametrize("words", [[WORD, f"{WORD}s"], ["too short", "too short"]])
def test_a_passphrase_that_was_mistyped_or_is_short_seals_nothing(
    sealed: list[tuple[Path, str]], typed: list[str], tmp_path: Path, words: list[str]
) -> None:
    typed += words
    assert main(["backup", str(tmp_path / "b"), "--home", str(tmp_path)]) == 1
    assert sealed == []


def restored(home: Path) -> Restored:
    manifest = Manifest(
        ballast="0.1.0", created_at=MADE, schema_revision="1", audit_events=9, audit_head="0", registry_revision=None,
        artifact_root=None,
    )
    return Restored(
        home=home, manifest=manifest, rows=7, files=8, champions={"wear": "3"}, unfinished=["r1"],
        unlearned=["site east was unlearned again"], notes=["no later state was named"],
    )


def test_a_restore_hands_on_what_was_asked_and_tells_all_that_is_to_be_known(
    typed: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The passphrase is typed once: a wrong one opens nothing."""
    asked = list[tuple[Any, ...]]()

    def stand_in(file: Path, home: Path, passphrase: str, *, self_contained: bool, later: object) -> Restored:
        asked.append((file, home, passphrase, self_contained, later))
        return restored(home)

    monkeypatch.setattr("api.recovery.restore.restore_backup", stand_in)
    file, home, newer = tmp_path / "b", tmp_path / "new", tmp_path / "c"
    typed += [WORD] * 2
    command = ["restore", str(file), "--home", str(home)]
    assert main(command) == 0 and main([*command, "--self-contained", "--later", str(newer), "--json"]) == 0
    assert asked == [(file, home, WORD, False, None), (file, home, WORD, True, (newer, unlearn_again))] and typed == []
    said, _, document = capsys.readouterr().out.partition("{")
    assert said.splitlines() == [
        f"{home}: the state of 2026-03-04 05:06:07+00:00; 7 rows, 8 files; the audit trail holds with its 9 events",
        "champion of wear: version 3",
        "run r1 is unfinished; it goes on with `ballast up` (where it is not wanted: `ballast run cancel r1`)",
        "site east was unlearned again", "note: no later state was named",
    ]
    assert json.loads("{" + document) == {
        "home": str(home), "made": "2026-03-04T05:06:07+00:00", "rows": 7, "files": 8, "audit_events": 9,
        "champions": {"wear": "3"}, "unfinished": ["r1"], "unlearned": ["site east was unlearned again"],
        "notes": ["no later state was named"],
    }
