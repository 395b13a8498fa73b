"""``ballast-site console`` says where its page is, for people and for programs, and stops at either signal."""

from __future__ import annotations

import io
import json
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest

from services.site_agent.cli import main
from services.site_agent.console import command
from tests.services.site_agent.console.conftest import settings_of


class Console:
    """A page that is told to stop by both signals as soon as it is served."""

    first_address = "http://127.0.0.1:8790/open?secret=x"

    def __init__(self, signals: dict[int, Callable[..., None]], out: io.BytesIO) -> None:
        self.signals, self.out, self.stopped, self.closed, self.told = signals, out, 0, False, ""
        self.enough = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True

    def shutdown(self) -> None:
        assert threading.current_thread() is not threading.main_thread(), "it would wait for itself"
        self.stopped += 1
        if self.stopped == 2:
            self.enough.set()

    def serve_forever(self, poll_interval: float) -> None:
        self.told = self.out.getvalue().decode()
        for number in (signal.SIGINT, signal.SIGTERM):
            self.signals[number](number, None)
        assert self.enough.wait(20)


@pytest.mark.parametrize("as_json", [False, True])
def test_it_says_where_the_page_is_and_stops_at_either_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_json: bool
) -> None:
    signals: dict[int, Any] = {}
    served: list[tuple[object, int]] = []
    out = io.BytesIO()
    console = Console(signals, out)
    settings = settings_of(tmp_path / "site")

    def made(settings: object, port: int) -> Console:
        served.append((settings, port))
        return console

    monkeypatch.setattr(command, "SiteConsole", made)
    monkeypatch.setattr(signal, "signal", signals.__setitem__)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, write_through=False))
    arguments = ["console", "--config", str(tmp_path / "site" / "site.toml"), "--port", "8791"]
    assert main([*arguments, *(["--json"] if as_json else [])]) == 0
    assert served == [(settings, 8791)] and console.closed
    # What was told before it serves: nobody would know the address else.
    if as_json:
        assert json.loads(console.told) == {"site_id": "plant-1", "address": console.first_address}
    else:
        assert console.told.splitlines()[1] == console.first_address
