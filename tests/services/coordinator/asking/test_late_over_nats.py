"""Late answers over the real plant link: agents' links, a NATS server with TLS and nkeys, and one slow plant."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from models.problem import Status
from services.contracts.keys.signing import signer
from services.contracts.wire.codec import encode
from services.contracts.wire.messages import Hello
from services.coordinator.asking.nats_transport import NatsTransport
from services.coordinator.asking.presence import connected_sites
from services.coordinator.training import Coordinator
from services.site_agent.connection.link import PlantLink
from services.site_agent.connection.link_address import Address
from tests.services.coordinator.fake_ports import RIG, FakePlant, FakeWorks

SLOW = "plant-2"


async def test_a_slow_plant_on_the_real_link_answers_late_and_counts(bus: Any, tmp_path: Path) -> None:
    plants = {}
    for number, (site, seed) in enumerate(bus.seeds.items()):
        plants[site] = FakePlant(site, tmp_path / "spare" / site / "site.nk", number)
        plants[site].seed_file, plants[site].public_key = seed, bus.keys[site]

    def answering(site: str) -> Any:
        def answer(frame: bytes, headers: Mapping[str, str] | None) -> bytes:
            time.sleep(0.3 if site == SLOW else 0.0)
            found = plants[site].answer(frame).frame
            assert found is not None
            return found

        return answer

    def greeting(site: str) -> Any:
        return lambda: encode(Hello(site_id=site, version="0"), signer(bus.seeds[site]))

    stop, works = asyncio.Event(), FakeWorks(plants)
    links = [
        PlantLink(
            Address(site, (bus.address,), bus.seeds[site], bus.keys[site], bus.files.authority, True), answering(site),
            greeting(site),
        )
        for site in plants
    ]
    serving = [asyncio.create_task(link.run(stop)) for link in links]
    transport: NatsTransport = bus.transport()
    await transport.connect()
    try:
        while len(await connected_sites(transport, plants)) < len(plants):
            await asyncio.sleep(0.05)
        coordinator = Coordinator(works.store, transport, bus.keys, RIG)
        run = works.run(waiting={}, gap=1e-3, max_rounds=200, absence_patience_seconds=10.0)
        trained = await coordinator.train(await coordinator.join(run))
    finally:
        stop.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*serving)
        await transport.close()
    assert trained.status is Status.CERTIFIED and trained.certificate.fresh_weight == 1.0
    told = [
        (each.status, each.question) for record in works.store.records for each in record.answers
        if each.site_id == SLOW
    ]
    assert ("open", 0) in told and any(status == "accepted" and question for status, question in told)
    answered = [
        each.question or record.round for record in works.store.records for each in record.answers
        if each.site_id == SLOW and each.status == "accepted"
    ]
    assert len(answered) == len(set(answered))
