"""A hello counts when its site signed it, and what it says stays on its line."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from services.contracts.keys.signing import new_seed_file, signer
from services.contracts.wire.codec import encode
from services.contracts.wire.messages import Hello
from services.coordinator.asking.nats_transport import NatsTransport
from services.coordinator.asking.presence import hear_hellos

HOSTILE = "9.9\n2031-01-01 INFO all is well\x1b[2J" + "x" * 500


def heard(frame: bytes, key: str) -> list[Hello]:
    """The hellos that count of what was said on a site's subject."""
    seen: list[Hello] = []

    async def subscribe(subject: str, hear: Any) -> None:
        await hear(SimpleNamespace(subject="hello.plant-1", data=frame))

    async def see(hello: Hello) -> None:
        seen.append(hello)

    transport = cast(NatsTransport, SimpleNamespace(subscribe=subscribe))
    asyncio.run(hear_hellos(transport, lambda site_id: key, see))
    return seen


def test_the_version_of_an_agent_is_a_few_words(tmp_path: Path) -> None:
    key = new_seed_file(tmp_path / "site.nk")
    hello = Hello(site_id="plant-1", version=HOSTILE, instance="a")
    (seen,) = heard(encode(hello, signer(tmp_path / "site.nk")), key)
    assert seen.version.startswith("9.9 2031-01-01 INFO all is well") and seen.version.isprintable()
    assert len(seen.version) == 40 and seen.instance == "a"


def test_what_is_no_hello_of_the_site_counts_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    key, other = new_seed_file(tmp_path / "site.nk"), tmp_path / "other.nk"
    new_seed_file(other)
    frames = (
        encode(Hello(site_id="plant-1", version="1"), signer(other)), encode(Hello(site_id="plant-1", version="1")),
        encode(Hello(site_id="plant-2", version="1"), signer(tmp_path / "site.nk")), HOSTILE.encode(),
    )
    assert [heard(frame, key) for frame in frames] == [[], [], [], []]
    assert len(caplog.records) == 4 and all(line.getMessage().isprintable() for line in caplog.records)
