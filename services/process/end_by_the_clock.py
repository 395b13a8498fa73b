"""An end that comes in any case, for processes that were told to end and have nothing to lose that is not kept."""

from __future__ import annotations

import os
import threading


def end_by_the_clock(seconds: float) -> None:
    """End this process with status 0 after so many seconds, whatever it is at, unless it has ended before."""
    clock = threading.Timer(seconds, os._exit, (0,))
    clock.daemon = True
    clock.start()
