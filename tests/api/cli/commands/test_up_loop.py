"""What `ballast up` does while all parts run: it tends them, and lets the NATS server forget keys that have ended."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from api.cli.commands import up
from api.cli.main import main
from services.contracts.errors import UnavailableError


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """What is done in so many looks, after which the process is told to stop."""
    handlers: dict[int, Any] = {}
    monkeypatch.setattr("signal.signal", lambda number, act: handlers.__setitem__(number, act))
    monkeypatch.setattr(up, "TEND_SECONDS", 0.0)
    monkeypatch.setattr("api.cli.processes.listening.check_ports", lambda _: None)
    monkeypatch.setattr(up, "start_all", lambda *_: None)
    monkeypatch.setattr(up, "addresses", lambda _: "all runs")

    def run(home: Path, count: int, told: int, refused: str = "") -> list[str]:
        done: list[str] = []

        def tend() -> None:
            done.append("tended")
            if done.count("tended") == count:
                handlers[told](told, None)

        def refresh(*, only_if_due: bool) -> None:
            done.append("refreshed" if only_if_due else "written anew")
            if refused:
                raise UnavailableError(refused)

        backend = SimpleNamespace(nats_users=SimpleNamespace(refresh=refresh))
        monkeypatch.setattr(up, "Supervisor", lambda *_: nullcontext(SimpleNamespace(tend=tend)))
        monkeypatch.setattr(up, "open_backend", lambda _: nullcontext(backend))
        assert main(["up", "--home", str(home)]) == 0
        return done

    return run


@pytest.mark.parametrize("told", [signal.SIGINT, signal.SIGTERM])
def test_keys_that_have_ended_are_looked_for_at_once_and_then_seldom(
    looks: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: int
) -> None:
    monkeypatch.setattr(up, "KEYS_SECONDS", 3600.0)
    assert looks(tmp_path, 3, told) == ["tended", "refreshed", "tended", "tended"]
    monkeypatch.setattr(up, "KEYS_SECONDS", 0.0)
    assert looks(tmp_path, 2, told) == ["tended", "refreshed"] * 2


def test_users_that_cannot_be_written_are_told_of_and_tried_again(
    looks: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(up, "KEYS_SECONDS", 0.0)
    assert looks(tmp_path, 2, signal.SIGTERM, "the disk is full") == ["tended", "refreshed"] * 2
    trouble = "the users of the NATS server are not brought up to date: the disk is full"
    assert capsys.readouterr().out.splitlines() == ["all runs", trouble, trouble, "stopping"]
