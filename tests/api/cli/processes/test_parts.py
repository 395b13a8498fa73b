"""A part of the OEM's side in a process of its own, and the stores that are made ready before."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from api.cli.commands import prepare
from api.cli.processes.parts import become
from migrations.run import current, head
from services.contracts.errors import InvalidInputError
from services.process.private_files import UMASK
from services.process.settings import Settings


class BecameError(Exception):
    """In the place of the program that this process would have become."""


@pytest.fixture
def became(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Program, arguments, environment and mask of what would be run."""
    found: list[Any] = []

    def execve(*given: Any) -> None:
        found.extend([*given, os.umask(UMASK)])
        raise BecameError

    monkeypatch.setattr("api.cli.processes.parts.os.execve", execve)
    return found


@pytest.mark.parametrize(("part", "listen", "host"), [
    ("prefect", None, "127.0.0.1"), ("prefect", "0.0.0.0", "0.0.0.0"), ("mlflow", None, "127.0.0.1"),
    ("mlflow", "0.0.0.0", "0.0.0.0"), ("api", None, "127.0.0.1"),
])
def test_a_process_becomes_its_part_with_the_environment_of_it_and_private_files(
    tmp_path: Path, became: list[Any], monkeypatch: pytest.MonkeyPatch, part: str, listen: str | None, host: str
) -> None:
    monkeypatch.setenv("BALLAST_HOME", "/elsewhere")
    monkeypatch.setenv("OURS", "kept")
    before = os.umask(0o022)
    try:
        with pytest.raises(BecameError):
            become(part, Settings.model_validate({"home": tmp_path}), listen)
    finally:
        os.umask(before)
    program, arguments, environment, mask = became
    assert program == arguments[0] and arguments[arguments.index("--host") + 1] == host
    assert (environment["BALLAST_HOME"], environment["OURS"], mask) == (str(tmp_path), "kept", UMASK)


def test_the_pages_of_a_registry_that_has_its_own_are_not_shown(tmp_path: Path, became: list[Any]) -> None:
    for address in ("http://mlflow.example:5000", "https://mlflow.example"):
        named = Settings.model_validate({"home": tmp_path, "mlflow": {"tracking_uri": address}})
        with pytest.raises(InvalidInputError, match="has pages of its own"):
            become("mlflow", named)
    assert became == [] and list(tmp_path.iterdir()) == []


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BALLAST_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_both_stores_are_made_ready(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, str]] = []

    class Registry:
        def __init__(self, tracking_uri: str, artifact_root: str) -> None:
            self.places = (tracking_uri, artifact_root)

        def prepare(self) -> None:
            made.append(self.places)

    monkeypatch.setattr(prepare, "ModelRegistry", Registry)
    assert prepare.main() == 0
    settings = Settings.load(home)
    assert made == [(settings.tracking_uri, settings.artifact_root)]
    assert current(settings.database) == head()


def test_stores_that_cannot_be_made_ready_are_one_line(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home.mkdir()
    (home / "ballast.toml").write_text('database_url = "mysql://x"\n')
    assert prepare.main() == 1
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("ballast: ") and err.count("\n") == 1
