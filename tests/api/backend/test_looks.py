"""Looks at parts, of which one hangs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from api.backend import looks
from api.backend.checked_source import CheckedSource
from api.backend.looks import Looks
from services.contracts.errors import UnavailableError
from services.predictor.cache import PredictorCache
from tests.waiting import PATIENCE, wait_until


def away() -> None:
    raise UnavailableError("it is away", code="database_full")


class Hanging:
    """A part that answers when it is let."""

    def __init__(self) -> None:
        self.asked, self.let = 0, threading.Event()

    def __call__(self) -> None:
        self.asked += 1
        assert self.let.wait(PATIENCE)


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hanging]:
    monkeypatch.setattr(looks, "LOOK_SECONDS", 0.05)
    part = Hanging()
    yield part
    part.let.set()


def test_each_part_says_for_itself_what_is_wrong(hanging: Hanging) -> None:
    found = Looks().failures({"store": hanging, "registry": away, "rest": lambda: None})
    assert [(part, str(error)) for part, error in found.items()] == [
        ("store", "the store has not answered yet"), ("registry", "it is away"),
    ]
    assert found["registry"].code == "database_full"
    found = Looks().failures({"registry": away, "store": hanging, "disk": away})
    assert list(found) == ["registry", "store", "disk"], "one that is away hides no other"


def test_nothing_is_kept_of_looks_that_came_back() -> None:
    """Their parts have names from outside: whoever asks for models that there are not names one each time."""
    ours = Looks()
    for number in range(9):
        assert ours.answer(f"model {number}", lambda: 7) == 7
        assert list(ours.failures({f"part {number}": away})) == [f"part {number}"]
    assert ours._on_their_way == {}


def test_who_asks_again_waits_for_the_look_that_hangs_and_begins_no_other(hanging: Hanging) -> None:
    ours = Looks()
    for _ in range(3):
        assert set(ours.failures({"store": hanging})) == {"store"}
    assert hanging.asked == 1
    hanging.let.set()
    wait_until(lambda: not ours.failures({"store": hanging}), "an answer")
    assert ours.failures({"store": hanging}) == {} and hanging.asked > 1, "a look that came back is not the last"


def test_what_a_part_answers_is_given_back_and_one_that_hangs_is_away(hanging: Hanging) -> None:
    assert Looks().answer("registry", lambda: 7) == 7
    with pytest.raises(UnavailableError, match="the registry has not answered yet"):
        Looks().answer("registry", hanging)


def test_who_comes_later_does_not_wait_for_a_look_that_was_waited_for(
    hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = Looks()
    assert ours.failures({"store": hanging})
    monkeypatch.setattr(looks, "LOOK_SECONDS", 10 * PATIENCE)
    with pytest.raises(UnavailableError):
        ours.answer("store", hanging)
    assert ours.failures({"store": hanging})["store"].code == "no_answer" and hanging.asked == 1


def test_a_registry_that_hangs_holds_up_no_diagnosis(hanging: Hanging, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version that was loaded is served; of another model is said that the registry does not answer."""
    known: Any = {"pumps": "1"}

    def resolve(name: str, _: str) -> str:
        if not known:
            hanging()
        return str(known[name])

    record = SimpleNamespace(run_id="a", signed_sha256=None)
    version = SimpleNamespace(name="pumps", version="1", run_id="a")
    store: Any = SimpleNamespace(model_versions=SimpleNamespace(alias=lambda *_: None, get=lambda *_: record))
    registry: Any = SimpleNamespace(resolve=resolve, get=lambda *_: version)
    cache = PredictorCache(CheckedSource(store, registry), recheck_seconds=0.0)
    monkeypatch.setattr(cache, "_open", lambda version: SimpleNamespace(version=version))
    served = cache.get("pumps")
    known.clear()
    assert cache.get("pumps") is served
    with pytest.raises(UnavailableError, match="has not answered yet"):
        cache.get("rigs")


def test_a_look_that_could_not_begin_keeps_no_later_one_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a host that has no thread left for a moment."""
    ours = Looks()

    def full(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", full)
        with pytest.raises(RuntimeError):
            ours.answer("store", lambda: 7)
    assert ours._on_their_way == {} and ours.answer("store", lambda: 7) == 7


def test_what_is_no_failure_of_a_part_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        Looks().failures({"store": lambda: 1 // 0})
