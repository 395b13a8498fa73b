"""Puts the parts of a site agent together and runs it until it is told to stop."""

from __future__ import annotations

import asyncio
import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from services.contracts.errors import UnavailableError
from services.contracts.keys.signing import public_key, signer
from services.contracts.machines.asset_type import AssetType
from services.contracts.wire.messages import Hello
from services.process.command_line import product_version
from services.process.end_by_the_clock import end_by_the_clock
from services.process.tracing import end_tracing, set_up_tracing
from services.site_agent.health import beat
from services.site_agent.logs import LOG
from services.site_agent.own_use.own_screen import data_summary, drift_account, exposure_account
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.settings import SiteSettings

if TYPE_CHECKING:
    from services.site_agent.contract_watch import WatchedRound
    from services.site_agent.outgoing.egress import Egress

STOP_SECONDS = 10.0  # how long a task that is worked on may take once the agent is told to stop


@contextmanager
def open_local_round(settings: SiteSettings) -> Iterator[tuple[WatchedRound, Egress]]:
    """The door and the way out, over the site's own policy, contract, key and ledger; closes the ledger at the end.

    The account of answers is one agent's, as the ledger is: two would each count as if alone.
    """
    from services.site_agent.contract_watch import WatchedRound
    from services.site_agent.door.local_round import LocalRound
    from services.site_agent.door.masked_runs import MaskedRuns
    from services.site_agent.door.oem_tasks import OemTasks
    from services.site_agent.outgoing.egress import Egress
    from services.site_agent.outgoing.ledger import Ledger
    from services.site_agent.outgoing.one_agent import for_one_agent

    policy = SitePolicy.from_toml(settings.policy)
    sign = signer(settings.nkey_seed)
    alone = for_one_agent(settings.exposure, UnavailableError, "the account of answers")
    with Ledger(settings.ledger) as ledger, alone:
        egress = Egress(ledger, sign, policy.max_message_bytes)
        masks = MaskedRuns(settings.site_id, public_key(settings.nkey_seed), sign, policy)

        tasks = None if settings.oem_key is None else OemTasks(settings.oem_key, settings.heard_keys)

        def open_door(asset_type: AssetType) -> LocalRound:
            return LocalRound(
                settings.site_id, settings.data, asset_type, policy, egress, settings.exposure, masks, tasks
            )

        door = WatchedRound(settings.asset_type, open_door)
        try:
            yield door, egress
        finally:
            door.close()


def check(settings: SiteSettings) -> list[str]:
    """What the site's data hold, for the plant's own screen; raise ``BallastError`` with what does not fit.

    So is told with what else the agent could not start, which methods of the policy it does not know, and which keys
    in it nobody can have.
    """
    from services.site_agent.own_use.own_files import files_summary
    from services.site_agent.rules.method_names import mistyped_key_lines, unknown_method_lines

    policy = SitePolicy.from_toml(settings.policy)
    found = data_summary(settings.data, AssetType.from_toml(settings.asset_type), policy)
    names = [*unknown_method_lines(policy.methods), *mistyped_key_lines(policy.auditors, policy.peers)]
    return [*found, *files_summary(settings), *names]


def exposure(settings: SiteSettings) -> tuple[dict[str, Any], list[str]]:
    """What the answers so far isolate, as figures and in plain words; raise ``BallastError`` where it is not known."""
    return exposure_account(settings.exposure, SitePolicy.from_toml(settings.policy))


def drift(settings: SiteSettings, *, anew: bool = False, looking: bool = False) -> tuple[dict[str, Any], list[str]]:
    """How far the readings have moved, as figures and in plain words; ``anew``: held against the rows of now.

    Who is only ``looking`` writes nothing.
    """
    return drift_account(settings, AssetType.from_toml(settings.asset_type), anew=anew, looking=looking)


def _on_signal(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Begin to stop. A second signal ends the process at once, and so does the clock where a task takes too long."""
    stop.set()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_DFL)
    # What is in the ledger was sent or will be asked again: there is nothing to lose that a task at work would finish.
    end_by_the_clock(STOP_SECONDS)


async def serve(
    settings: SiteSettings, connect_timeout: float | None = None, connected: Callable[[str], None] | None = None
) -> None:
    """Answer tasks until SIGINT or SIGTERM; raise ``BallastError`` when going on is hopeless.

    ``connected`` is called once, with the server that was the first to hear the agent's hello.
    """
    from services.site_agent.connection.link import PlantLink
    from services.site_agent.connection.link_address import Address

    address = Address.of(settings, settings.nkey_seed)
    set_up_tracing(settings.tracing, "ballast-site")
    hello = Hello(site_id=settings.site_id, version=product_version(), instance=secrets.token_hex(8))
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    with open_local_round(settings) as (local_round, egress):
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, _on_signal, loop, stop)
        link = PlantLink(address, local_round.answer, lambda: egress.release(hello), connected)
        warm_up = asyncio.create_task(asyncio.to_thread(local_round.warm_up))
        beats = asyncio.create_task(beat(settings, lambda: link.is_connected, told=lambda: local_round.told))
        looks = asyncio.create_task(local_round.watch())
        try:
            await link.run(stop, connect_timeout)
        finally:
            beats.cancel()
            looks.cancel()
            await warm_up
            end_tracing()
    LOG.info("stopped")
