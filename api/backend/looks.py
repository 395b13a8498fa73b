"""Looks at parts that may hang: who waits for one is told so, and no second look is begun beside one that hangs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar, cast

from services.contracts.errors import BallastError, UnavailableError

Answer = TypeVar("Answer")
LOOK_SECONDS = 4.0
"""How long whoever looks waits for an answer; the look itself goes on. Probes of a cluster wait for 5 s."""


class Looks:
    """Looks on their way, one of a part. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._on_their_way: dict[str, tuple[Future[Any], float]] = {}

    def failures(self, parts: Mapping[str, Callable[[], object]]) -> dict[str, BallastError]:
        """Ask all parts at once; what each that is not well raised, or that it does not answer, by part."""
        asked = {part: self._look(part, ask) for part, ask in parts.items()}
        found = {}
        for part, look in asked.items():
            try:
                _awaited(look)
            except BallastError as error:
                found[part] = error
            except TimeoutError:
                found[part] = _no_answer(part)
        return found

    def answer(self, part: str, ask: Callable[[], Answer]) -> Answer:
        """What a part answers; ``UnavailableError`` where it does not."""
        try:
            return cast(Answer, _awaited(self._look(part, ask)))
        except TimeoutError:
            raise _no_answer(part) from None

    def _look(self, part: str, ask: Callable[[], object]) -> tuple[Future[Any], float]:
        """The look at a part that is on its way, or a new one, and until when it is waited for."""
        with self._lock:
            found = self._on_their_way.get(part)
            if found is None:
                found = Future[Any](), time.monotonic() + LOOK_SECONDS
                given = part, found[0], ask
                threading.Thread(target=self._ask, args=given, name=f"look at {part}", daemon=True).start()
                self._on_their_way[part] = found  # once it has begun: one that never did would be waited for for ever
            return found

    def _ask(self, part: str, look: Future[Any], ask: Callable[[], object]) -> None:
        try:
            tell = partial(look.set_result, ask())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            tell = partial(look.set_exception, error)
        with self._lock:
            self._on_their_way.pop(part, None)
        tell()


def _awaited(look: tuple[Future[Any], float]) -> Any:
    """What a look brings; ``TimeoutError`` at its end, which who comes later does not wait for once more."""
    future, until = look
    return future.result(max(0.0, until - time.monotonic()))


def _no_answer(part: str) -> UnavailableError:
    return UnavailableError(f"the {part} has not answered yet", code="no_answer")
