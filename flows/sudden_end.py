"""A flow's process that is told to end does so at once, as if it were killed."""

from __future__ import annotations

import signal
import threading


def end_at_once_when_told() -> None:
    """Let SIGTERM end this process as SIGKILL would, for the rest of the flow run.

    Prefect's handler raises in the middle of whatever the main thread does. Within a transaction that can leave behind
    a connection with SQLite's lock for writing: all other processes of the service then wait until this one has tidied
    up, for which it needs that lock itself. Nothing has to be tidied up: what is committed is kept, and the next
    process takes the run up when the lease has expired. Prefect puts its handler back as each flow begins, so each
    calls this.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
