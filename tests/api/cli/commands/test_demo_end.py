"""A demo that is told to end ends, also where the exception of the signal's handler is lost."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator

import pytest

from api.cli.commands.demo import end_when_told

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Signals as they were, after each test; Ctrl-C is heard in it, whatever started the tests."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_it_raises_where_it_is(number: signal.Signals) -> None:
    stopped = end_when_told()
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), number)
    assert stopped.is_set()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("number", SIGNALS)
def test_an_exception_that_is_lost_is_known_of(number: signal.Signals) -> None:
    """What a handler raises while garbage is collected, Python reports and ignores."""
    stopped = end_when_told()

    def told(phase: str, info: dict[str, int]) -> None:
        gc.callbacks.remove(told)
        os.kill(os.getpid(), number)

    gc.callbacks.append(told)
    gc.collect()
    assert stopped.is_set()


def test_ctrl_c_that_a_shell_ignores_for_its_background_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_when_told()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGTERM)
