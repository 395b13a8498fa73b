"""A flow that is told to end does so at once, whatever handler Prefect put there as the flow began."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from prefect.logging import disable_run_logger

from flows import retrain
from flows.sudden_end import end_at_once_when_told


class ReachedError(Exception):
    """The flow came to where its work begins."""


@pytest.fixture(autouse=True)
def as_prefect_begins_a_flow() -> Iterator[None]:
    def raise_in_between(*_: Any) -> None:
        raise AssertionError("raised in the middle of whatever the process does")

    before = signal.signal(signal.SIGTERM, raise_in_between)
    with disable_run_logger():
        yield
    signal.signal(signal.SIGTERM, before)


async def test_a_training_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def open_context() -> Iterator[None]:
        raise ReachedError
        yield

    monkeypatch.setattr(retrain, "open_context", open_context)
    with pytest.raises(ReachedError):
        await retrain.retrain.fn("pump-leak")
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


async def test_a_tuning_ends_at_once() -> None:
    class Coordinator:
        async def tune(self, _: Any) -> Any:
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
            raise ReachedError

    with pytest.raises(ReachedError):
        await retrain.tuning_flow.fn(Coordinator(), None)  # type: ignore[arg-type]


def test_a_flow_in_a_thread_leaves_the_process_as_it_is() -> None:
    thread = threading.Thread(target=end_at_once_when_told)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
