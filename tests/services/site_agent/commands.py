"""``ballast-site`` in this process: where a site's settings are, and the one line of a command that fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.site_agent.cli import main

Capture = pytest.CaptureFixture[str]


def config(home: Path) -> list[str]:
    return ["--config", str(home / "site.toml")]


def failure(capsys: Capture, *arguments: str) -> str:
    """The one line on stderr of a command that fails."""
    assert main(arguments) == 1
    out, said = capsys.readouterr()
    assert said.startswith("ballast-site: ") and said.count("\n") == 1, said
    return said
