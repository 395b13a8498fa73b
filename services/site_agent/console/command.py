"""``ballast-site console``: serve the plant's own page until told to stop."""

from __future__ import annotations

import signal
import threading

from services.process.command_line import print_line
from services.site_agent.console.server import SiteConsole
from services.site_agent.settings import SiteSettings


def serve(settings: SiteSettings, port: int, *, as_json: bool = False) -> None:
    """Serve until SIGINT or SIGTERM, after saying where; ``UnavailableError`` where the port is taken."""
    with SiteConsole(settings, port) as console:
        def stop(*_: object) -> None:
            # serve_forever ends at the request of another thread only.
            threading.Thread(target=console.shutdown, daemon=True).start()

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
        if as_json:
            print_line({"site_id": settings.site_id, "address": console.first_address})
        else:
            print(f"The page of {settings.site_id}, for this machine alone; the address opens once, in one browser:")
            print(console.first_address)
            print("It reads the site's files, writes nothing and sends nothing. End it with Ctrl-C.", flush=True)
        console.serve_forever(poll_interval=0.2)
