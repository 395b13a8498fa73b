"""Ports of tests: two sessions on one machine are not given the same, also while the server of one is down."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ports

HOLDER = "import sys; from tests.ports import free_port; print(free_port(), flush=True); sys.stdin.read()"
ROOT = Path(__file__).resolve().parents[1]


def test_a_port_that_another_session_was_given_is_left_to_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}  # each session writes into a folder of its own
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdin is not None and other.stdout is not None
        theirs = int(other.stdout.readline())
        monkeypatch.setattr(ports, "_NEXT", iter([theirs, theirs + 1, theirs + 2]))
        assert ports.free_port() in (theirs + 1, theirs + 2), "nobody listens there, and it is theirs all the same"
        other.stdin.close()
        other.wait()
        monkeypatch.setattr(ports, "_NEXT", iter([theirs]))
        assert ports.free_port() == theirs, "who has ended needs no port"
