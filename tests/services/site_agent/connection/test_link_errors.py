"""What an error of the link means for the agent: its end, or another try."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nats.errors import Error as NatsError

from services.contracts.keys.signing import new_seed_file
from services.site_agent.connection import link_errors
from services.site_agent.connection.link_errors import Hopeless


@pytest.fixture
def address(tmp_path: Path) -> Any:
    key = new_seed_file(tmp_path / "site.nk")
    return SimpleNamespace(
        site_id="plant-1", public_key=key, seed_file=tmp_path / "site.nk", hello_subject="hello.plant-1",
        task_subject="site.plant-1.task",
    )


@pytest.mark.parametrize(("said", "ends"), [
    ("'Authorization Violation'", True), ("'User Authentication Revoked'", True),
    ("'Authentication Timeout'", False), ("'maximum connections exceeded'", False),
])
def test_a_refused_key_ends_the_agent_after_its_grace_and_a_slow_line_does_not(
    address: Any, monkeypatch: pytest.MonkeyPatch, said: str, ends: bool
) -> None:
    seconds = 0.0
    monkeypatch.setattr(link_errors, "time", SimpleNamespace(monotonic=lambda: seconds))
    hopeless, error = Hopeless(address), NatsError(f"nats: {said}")
    assert hopeless.of(error, was_connected=False) is None
    seconds = link_errors.KEY_GRACE_SECONDS
    assert (hopeless.of(error, was_connected=False) is not None) == ends
