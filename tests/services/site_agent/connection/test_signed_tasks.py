"""Over a real server: an agent that knows the OEM's key answers its coordinator, and nobody else on the same server."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from services.bus import server
from services.contracts.keys.signing import public_key
from services.contracts.wire.codec import decode
from services.contracts.wire.messages import SiteRefusal, SiteUpdate
from services.coordinator.asking.nats_transport import NatsTransport
from tests.services.site_agent.connection.conftest import Bus, Oem, Plant
from tests.waiting import PATIENCE


def asked(bus: Bus, task: bytes, authority: Path | None) -> bytes:
    """What the plant answers a coordinator that begins now."""

    async def ask() -> bytes:
        transport = NatsTransport([bus.url], bus.files.coordinator_seed, authority)
        await transport.connect(PATIENCE)
        try:
            answer = (await transport.ask({"plant-1": task}, PATIENCE))["plant-1"]
        finally:
            await transport.close()
        assert answer.frame is not None, answer.failure
        return answer.frame

    return asyncio.run(ask())


def test_the_coordinator_is_answered_and_who_else_has_the_server_is_not(bus: Bus, plant: Plant, oem: Oem) -> None:
    settings = plant.folder / "site.toml"
    text = settings.read_text()
    assert '# oem_key = "U..."' in text
    settings.write_text(text.replace('# oem_key = "U..."', f'oem_key = "{public_key(bus.files.coordinator_seed)}"'))
    server.update_users(bus.files, {"plant-1": plant.key})
    bus.start()
    plant.start()
    plant.wait_for("connected as a site")
    (unsigned,), _ = oem.ask(oem.join(1))
    refusal = decode(unsigned, 1 << 20)
    assert isinstance(refusal, SiteRefusal) and refusal.code == "task_not_signed" and refusal.round == 1
    assert isinstance(decode(asked(bus, oem.join(2), bus.files.authority), 1 << 20), SiteUpdate)

    server.rotate_coordinator(bus.files, datetime.now(UTC) + timedelta(hours=1))
    server.update_users(bus.files, {"plant-1": plant.key})
    assert isinstance(decode(asked(bus, oem.join(3), bus.files.authority), 1 << 20), SiteUpdate)
    assert (plant.folder / "heard-keys.json").exists()
    code, said = plant.stop()
    assert code == 0, said

    plant.start()
    plant.wait_for("connected as a site", 2)
    assert isinstance(decode(asked(bus, oem.join(4), bus.files.authority), 1 << 20), SiteUpdate)


def test_where_the_oem_gave_no_certificate_the_systems_authorities_vouch_for_the_server(
    bus: Bus, plant: Plant, oem: Oem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For the plant and for the coordinator, whose server stands elsewhere."""
    settings = plant.folder / "site.toml"
    settings.write_text(re.sub("(?m)^ca = .*\n", "", settings.read_text()))
    server.update_users(bus.files, {"plant-1": plant.key})
    bus.start()
    plant.start()
    code, said = plant.ended()
    assert code == 1 and "the server's certificate does not fit" in said

    monkeypatch.setenv("SSL_CERT_FILE", str(bus.files.authority))
    plant.start()
    plant.wait_for("connected as a site")
    assert isinstance(decode(asked(bus, oem.join(1), None), 1 << 20), SiteUpdate)
