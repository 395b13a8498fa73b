"""Looks at parts that may hang: who waits for one is told so, and no second look is begun beside one that hangs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar, cast

from services.contracts.errors import BallastError, UnavailableError

Answer = TypeVar("Answer")
LOOK_SECONDS = 4.0
"""How long whoever looks waits for an answer; the look itself goes on. Probes of a cluster wait for 5 s."""


class Looks:
    """Looks on their way, one of a part. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._on_their_way: dict[str, Future[Any]] = {}

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
                found[part] = _no_answer(part)
        return found

    def answer(self, part: str, ask: Callable[[], Answer]) -> Answer:
        """What a part answers; ``UnavailableError`` where it does not."""
        try:
            return cast(Answer, self._look(part, ask).result(LOOK_SECONDS))
        except TimeoutError:
            raise _no_answer(part) from None

    def _look(self, part: str, ask: Callable[[], object]) -> Future[Any]:
        with self._lock:
            look = self._on_their_way.get(part)
            if look is None or look.done():
                look = self._on_their_way[part] = Future()
                threading.Thread(target=_ask, args=(look, ask), name=f"look at {part}", daemon=True).start()
            return look


def _ask(look: Future[Any], ask: Callable[[], object]) -> None:
    try:
        look.set_result(ask())
    except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
        look.set_exception(error)


def _no_answer(part: str) -> UnavailableError:
    return UnavailableError(f"the {part} has not answered yet", code="no_answer")
