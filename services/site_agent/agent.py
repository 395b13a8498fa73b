"""Puts the parts of a site agent together and runs it until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from services.contracts.asset_type import AssetType
from services.contracts.messages import Hello
from services.contracts.signing import public_key, signer
from services.site_agent.egress import Egress
from services.site_agent.ledger import Ledger
from services.site_agent.local_round import LocalRound, data_summary, exposure_account
from services.site_agent.logs import LOG
from services.site_agent.policy import SitePolicy
from services.site_agent.settings import SiteSettings


def product_version() -> str:
    """Version of the installed distribution."""
    try:
        return version("ballast-diagnosis")
    except PackageNotFoundError:
        return "unknown"


@contextmanager
def open_local_round(settings: SiteSettings) -> Iterator[tuple[LocalRound, Egress]]:
    """The door and the way out, over the site's own policy, contract, key and ledger; closes the ledger at the end."""
    policy = SitePolicy.from_toml(settings.policy)
    asset_type = AssetType.from_toml(settings.asset_type)
    sign = signer(settings.nkey_seed)
    with Ledger(settings.ledger) as ledger:
        egress = Egress(ledger, sign, policy.max_message_bytes)
        door = LocalRound(settings.site_id, settings.data, asset_type, policy, egress, settings.exposure)
        try:
            yield door, egress
        finally:
            door.close()


def check(settings: SiteSettings) -> list[str]:
    """What the site's data hold, for the plant's own screen; raise ``BallastError`` with what does not fit."""
    policy = SitePolicy.from_toml(settings.policy)
    return data_summary(settings.data, AssetType.from_toml(settings.asset_type), policy)


def exposure(settings: SiteSettings) -> tuple[dict[str, Any], list[str]]:
    """What the answers so far isolate, as figures and in plain words; raise ``BallastError`` where it is not known."""
    return exposure_account(settings.exposure, SitePolicy.from_toml(settings.policy))


async def serve(settings: SiteSettings, connect_timeout: float | None = None) -> None:
    """Answer tasks until SIGINT or SIGTERM; raise ``BallastError`` when going on is hopeless."""
    from services.site_agent.link import Address, PlantLink

    address = Address(
        site_id=settings.site_id, servers=settings.servers, seed_file=settings.nkey_seed,
        public_key=public_key(settings.nkey_seed), authority=settings.ca, needs_tls=settings.needs_tls,
    )
    hello = Hello(site_id=settings.site_id, version=product_version())
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    with open_local_round(settings) as (local_round, egress):
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        link = PlantLink(address, local_round.answer, lambda: egress.release(hello))
        warm_up = asyncio.create_task(asyncio.to_thread(local_round.warm_up))
        try:
            await link.run(stop, connect_timeout)
        finally:
            await warm_up
    LOG.info("stopped")
