"""The command on a home of its own, with a fresh database and the tests' MLflow."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from api.backend.wiring import Backend, open_backend
from api.cli.main import main
from services.process.settings import Settings


@dataclass(frozen=True)
class Shell:
    """Runs ``ballast`` in this process."""

    home: Path
    capture: pytest.CaptureFixture[str]

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, output and error output."""
        self.capture.readouterr()
        try:
            code = main([*arguments, "--home", str(self.home)])
        except SystemExit as ended:
            code = int(ended.code or 0)
        found = self.capture.readouterr()
        return code, found.out, found.err

    def good(self, *arguments: str) -> str:
        """Output of a command that must do what was asked."""
        code, out, err = self.run(*arguments)
        assert code == 0, err
        return out

    def read(self, *arguments: str) -> Any:
        """Result of a command that prints JSON."""
        return json.loads(self.good(*arguments, "--json"))

    def refused(self, *arguments: str) -> str:
        """The one line of a command that must fail."""
        code, out, err = self.run(*arguments)
        assert (code, out) == (1, ""), (out, err)
        (line,) = err.splitlines()
        assert line.startswith("ballast: ")
        return line


@pytest.fixture
def shell(
    tmp_path: Path, database_url: str, mlflow_settings: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> Shell:
    text = f"database_url = {json.dumps(database_url)}\n\n[mlflow]\n"
    text += "".join(f"{name} = {json.dumps(value)}\n" for name, value in mlflow_settings.items())
    (tmp_path / "ballast.toml").write_text(text)
    return Shell(tmp_path, capsys)


@pytest.fixture
def behind(shell: Shell) -> Iterator[Backend]:
    """What the commands work on."""
    with open_backend(Settings.load(shell.home)) as backend:
        yield backend


@pytest.fixture
def plan_file(tmp_path: Path) -> Callable[..., str]:
    """Write a plan and give its path."""

    def write(text: str = "", name: str = "nightly") -> str:
        path = tmp_path / f"{name}.toml"
        path.write_text(f'name = "{name}"\nasset_type = "triplex-pump"\ncron = "0 2 * * *"\n{text}\n')
        return str(path)

    return write


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A host that is nine hours ahead of UTC."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "XYZ-9")
        time.tzset()
        yield
    time.tzset()
