"""Looks at parts that may hang: who waits for one is told so, and no second look is begun beside one that hangs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future

from services.contracts.errors import BallastError, UnavailableError

LOOK_SECONDS = 4.0
"""How long whoever looks waits for an answer; the look itself goes on. Probes of a cluster wait for 5 s."""


class Looks:
    """Looks on their way, one of a part. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._on_their_way: dict[str, Future[None]] = {}

    def failures(self, parts: Mapping[str, Callable[[], object]]) -> dict[str, BallastError]:
        """Ask all parts at once; what each that is not well raised, or that it does not answer, by part."""
        asked = {part: self._look(part, ask) for part, ask in parts.items()}
        found, deadline = {}, time.monotonic() + LOOK_SECONDS
        for part, look in asked.items():
            try:
                look.result(max(0.0, deadline - time.monotonic()))
            except BallastError as error:
                found[part] = error
            except TimeoutError:
                found[part] = UnavailableError(f"the {part} has not answered yet", code="no_answer")
        return found

    def _look(self, part: str, ask: Callable[[], object]) -> Future[None]:
        with self._lock:
            look = self._on_their_way.get(part)
            if look is None or look.done():
                look = self._on_their_way[part] = Future()
                threading.Thread(target=_ask, args=(look, ask), name=f"look at {part}", daemon=True).start()
            return look


def _ask(look: Future[None], ask: Callable[[], object]) -> None:
    try:
        ask()
    except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
        look.set_exception(error)
    else:
        look.set_result(None)
