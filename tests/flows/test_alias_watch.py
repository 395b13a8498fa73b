"""The watch over the registry's aliases goes on whatever fails, and undoes nothing that is on its way."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from flows import again_and_again, alias_watch
from services.contracts.errors import UnavailableError
from services.registry.labels import CHAMPION


class Office:
    """Store and registry of two models; ``store`` and ``registry`` say which version is champion of which."""

    def __init__(self, store: dict[str, str], registry: dict[str, str]) -> None:
        self.champions, self.pointed, self.committed = store, registry, dict(store)
        self.done: list[Any] = []
        self.settings = self
        self.store = SimpleNamespace(model_versions=self._records(self.champions), atomic=self._atomic)
        self.registry = SimpleNamespace(
            aliases=lambda name: {CHAMPION: self.pointed[name]},
            point=lambda name, alias, version: self.pointed.update({name: version}),
        )

    def _records(self, champions: dict[str, str]) -> Any:
        return SimpleNamespace(
            models=lambda: tuple(champions), numbers=lambda name: (),
            alias=lambda name, alias: SimpleNamespace(version=champions[name]) if alias == CHAMPION else None,
        )

    @contextmanager
    def _atomic(self) -> Iterator[Any]:
        """A transaction sees what is committed once it has its turn."""
        seen = dict(self.champions)
        yield SimpleNamespace(model_versions=self._records(seen), audit=SimpleNamespace(
            take_turn=lambda: seen.update(self.committed), append=lambda **entry: self.done.append(entry),
        ))


def restored(office: Any) -> list[str]:
    return [each.model for each in alias_watch.restore_aliases(office)]


def test_every_model_is_looked_at_and_each_entry_says_who_put_it_back() -> None:
    office = Office({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "1", "c": "4"})
    assert restored(office) == ["b", "c"]
    assert office.pointed == office.champions
    assert [(entry["actor"], entry["role"], entry["target"]) for entry in office.done] == [
        ("flows:alias-watch", None, "model:b"), ("flows:alias-watch", None, "model:c"),
    ]
    assert restored(office) == []


def test_a_promotion_that_is_committed_while_the_watch_waits_its_turn_is_left_alone() -> None:
    office = Office({"a": "1"}, {"a": "2"})
    office.committed["a"] = "2"
    assert restored(office) == [] and office.pointed == {"a": "2"} and office.done == []


def test_the_watch_goes_on_after_a_failure_and_holds_up_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fails: list[Exception | None] = [UnavailableError("no registry"), None, OSError("no disk")]
    slept: list[float] = []
    threads: list[threading.Thread] = []

    def restore(context: object) -> None:
        threads.append(threading.current_thread())
        if (failure := fails[len(threads) - 1]) is not None:
            raise failure

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == len(fails):
            raise asyncio.CancelledError

    monkeypatch.setattr(alias_watch, "restore_aliases", restore)
    monkeypatch.setattr(again_and_again, "asyncio", SimpleNamespace(to_thread=asyncio.to_thread, sleep=sleep))
    caplog.set_level(logging.WARNING, "ballast.flows")
    context: Any = None
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(alias_watch.watch_aliases(context))
    assert slept == [10.0, 10.0, 10.0]
    assert caplog.messages == [
        f"cannot hold the registry against the store: {why}" for why in ("no registry", "no disk")
    ]
    assert threading.main_thread() not in threads
