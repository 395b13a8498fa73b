"""Site agents of many plants in one process: ``python -m tests.benchmarks.agents_together SITE.TOML ...``.

Each has its own settings, key, vault, ledger and connection, as ``ballast-site run`` has them; what they share is the
interpreter. It prints ``ready`` when all are connected, and on SIGUSR1 the processor time that it has used.
"""

from __future__ import annotations

import asyncio
import secrets
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from services.contracts.keys.signing import public_key
from services.contracts.wire.messages import Hello
from services.site_agent.agent import open_local_round
from services.site_agent.connection.link import PlantLink
from services.site_agent.connection.link_address import Address
from services.site_agent.settings import SiteSettings


async def serve_all(files: Sequence[Path]) -> None:
    """Answer for all plants until SIGTERM."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGUSR1, lambda: print(f"cpu {time.process_time()}", flush=True))
    with ExitStack() as open_doors:
        links = []
        for file in files:
            settings = SiteSettings.from_toml(file)
            local_round, egress = open_doors.enter_context(open_local_round(settings))
            local_round.warm_up()
            key = public_key(settings.nkey_seed)
            address = Address(
                settings.site_id, settings.servers, settings.nkey_seed, key, settings.ca, settings.needs_tls
            )
            hello = Hello(site_id=settings.site_id, version="0", instance=secrets.token_hex(8))
            links.append(PlantLink(address, local_round.answer, partial(egress.release, hello)))
        running = [asyncio.create_task(link.run(stop)) for link in links]
        while not all(link.is_connected for link in links) and not stop.is_set():
            await asyncio.sleep(0.05)
        print("ready", flush=True)
        await asyncio.gather(*running)


if __name__ == "__main__":
    asyncio.run(serve_all([Path(word) for word in sys.argv[1:]]))
