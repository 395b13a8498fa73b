"""A server cannot have its own words signed: neither side of the link signs what is no challenge."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from services.bus.certificates import ensure_certificates
from services.bus.configuration import TlsFiles
from services.contracts.access.enrolment import proof
from services.contracts.errors import UnavailableError
from services.contracts.keys.key_chain import KeyStatement
from services.contracts.keys.signed_documents import signed_bytes
from services.contracts.keys.signing import new_seed_file, verify
from services.contracts.wire.codec import encode
from services.contracts.wire.messages import SiteRefusal
from services.coordinator.asking.nats_transport import NatsTransport
from services.process.ended_tasks import give_up
from services.site_agent.connection.link import PlantLink
from services.site_agent.connection.link_address import Address, LinkError

CHALLENGE = "kD0t-9sP_3xYq2A"
A_KEY = "U" + 55 * "A"


def a_frame() -> str:
    """An answer whose bytes are text: it has no numbers."""
    refusal = SiteRefusal(
        kind="round", site_id="plant-1", run_id=32 * "0", round=1, task_sha256=64 * "0", code="bad_task",
        reason=20 * "x",  # its length, and so that of the header, is said in bytes that are text too
    )
    signed_by_nobody = encode(refusal, lambda unsigned: b"")
    text = signed_by_nobody.decode()
    return text


def a_statement() -> str:
    now = datetime.now(UTC)
    return KeyStatement(former=A_KEY, next=A_KEY, at=now, former_until=now).covered().decode()


WANTED = {
    "a version": signed_bytes({"model": "bearing", "signed_by": A_KEY}).decode(),
    "a change of keys": a_statement(), "an answer": a_frame(), "an enrolment": proof("1", "plant-1", A_KEY).decode(),
    "nothing": "", "too much": 65 * "A", "no text": 7, "a line end": CHALLENGE + "\n",
}


class Hostile:
    """What says that it is a NATS server, with a challenge of its own; it keeps the signatures that it is shown."""

    def __init__(self, challenge: object) -> None:
        self.challenge, self.signatures, self.tries, self.port = challenge, list[bytes](), 0, 0
        self.heard = b""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.tries += 1
        info = {"server_id": "N", "version": "2.10.0", "max_payload": 1_000_000, "auth_required": True,
                "nonce": self.challenge, "headers": True}
        writer.write(b"INFO " + json.dumps(info).encode() + b"\r\n")
        with contextlib.suppress(ConnectionError):
            while line := await reader.readline():
                self.heard += line
                if line.startswith(b"CONNECT "):
                    self.signatures.append(base64.b64decode(json.loads(line[8:])["sig"]))
                    writer.write(b"-ERR 'Authorization Violation'\r\n")
        writer.close()


@asynccontextmanager
async def hostile(challenge: object) -> AsyncIterator[Hostile]:
    found = Hostile(challenge)
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    async with server:
        yield found


async def tried(found: Hostile) -> None:
    """Until the other side came twice."""
    while found.tries < 2:
        await asyncio.sleep(0.01)


async def show_plant(found: Hostile, seed: Path, key: str, scheme: str = "nats", ca: Path | None = None) -> None:
    sealed = scheme == "tls" or ca is not None
    address = Address("plant-1", (f"{scheme}://127.0.0.1:{found.port}",), seed, key, ca, needs_tls=sealed)
    link = asyncio.create_task(PlantLink(address, lambda *_: b"", lambda: b"hello").run(asyncio.Event()))
    if sealed:
        with pytest.raises(LinkError, match="the server does not speak TLS; nothing was sent over the open connection"):
            await link
        return
    trying = asyncio.create_task(tried(found))
    done, _ = await asyncio.wait({trying, link}, return_when=asyncio.FIRST_COMPLETED)
    for ended in done:
        ended.result()
    await give_up(link)


async def show_coordinator(found: Hostile, seed: Path, key: str, scheme: str = "nats", ca: Path | None = None) -> None:
    transport = NatsTransport([f"{scheme}://127.0.0.1:{found.port}"], seed, ca)
    said = "the server does not speak TLS" if scheme == "tls" or ca is not None else "no NATS server at"
    with pytest.raises(UnavailableError, match=said):
        await transport.connect(0.4)
    await transport.close()


SIDES: dict[str, Any] = {"plant": show_plant, "coordinator": show_coordinator}


@pytest.mark.parametrize("side", SIDES)
async def test_a_challenge_is_signed(side: str, tmp_path: Path) -> None:
    key = new_seed_file(tmp_path / "own.nk")
    async with hostile(CHALLENGE) as found:
        await SIDES[side](found, tmp_path / "own.nk", key)
    assert found.signatures and verify(key, CHALLENGE.encode(), found.signatures[0])


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("wanted", WANTED.values(), ids=WANTED)
async def test_what_is_no_challenge_is_not_signed(
    side: str, wanted: object, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    key = new_seed_file(tmp_path / "own.nk")
    async with hostile(wanted) as found:
        await SIDES[side](found, tmp_path / "own.nk", key)
    assert found.tries and not found.signatures
    if side == "plant":
        assert [line for line in caplog.messages if "asks for a signature of what is no challenge" in line]


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("by", ["the OEM's authority", "the system's"])
async def test_over_an_open_connection_no_challenge_is_signed(side: str, by: str, tmp_path: Path) -> None:
    """Who stands in the way can say in the server's name that it speaks no TLS, with the true server's challenge."""
    key, files = new_seed_file(tmp_path / "own.nk"), TlsFiles(tmp_path)
    ensure_certificates(files, ["localhost"])
    ours = by == "the OEM's authority"
    async with hostile(CHALLENGE) as found:
        await SIDES[side](
            found, tmp_path / "own.nk", key, "nats" if ours else "tls", files.authority if ours else None
        )
    assert found.tries and not found.signatures and not found.heard


async def test_who_is_asked_says_what_the_server_wants(tmp_path: Path) -> None:
    new_seed_file(tmp_path / "own.nk")
    async with hostile("{}") as found:
        transport = NatsTransport([f"nats://127.0.0.1:{found.port}"], tmp_path / "own.nk", None)
        with pytest.raises(UnavailableError, match="asks for a signature of what is no challenge"):
            await transport.connect(0.4)
        await transport.close()
