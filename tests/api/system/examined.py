"""What `ballast doctor` finds in a home."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from api.cli.main import main


def examined(home: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = main(["doctor", "--json", "--home", str(home)])
    return code, {found["check"]: found for found in json.loads(capsys.readouterr().out)}
