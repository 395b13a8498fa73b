"""A told end: SIGTERM is noted where it comes, and taken up between two steps.

An exception that a signal's handler raises may be lost: Python ignores those that come up while it collects garbage or
ends an object. And one that comes up while a server is being started would leave the server behind.
"""

from __future__ import annotations

import signal
import sys

_told: list[int] = []


def listen() -> None:
    """Note SIGTERM from now on, in place of ending at once."""
    signal.signal(signal.SIGTERM, lambda number, _: _told.append(number))


def end_if_told() -> None:
    """``SystemExit`` with the shell's status of a signal, once one has come."""
    if _told:
        sys.exit(128 + _told[0])
