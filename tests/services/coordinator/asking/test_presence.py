"""A hello counts when its site signed it, and what it says stays on its line."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from services.contracts.errors import UnavailableError
from services.contracts.keys.signing import new_seed_file, signer
from services.contracts.wire.codec import encode
from services.contracts.wire.messages import Hello
from services.contracts.wire.roll import ROLL, TWINS
from services.coordinator.asking import presence
from services.coordinator.asking.nats_transport import NatsTransport
from services.coordinator.asking.presence import hear_hellos

LOG = "ballast.coordinator"
HOSTILE = "9.9\n2031-01-01 INFO all is well\x1b[2J" + "x" * 500


def heard(frame: bytes, key: str, *more: tuple[str, bytes]) -> list[Hello]:
    """The hellos that count of what was said on a site's subject, and then on others'."""
    seen: list[Hello] = []

    async def subscribe(subject: str, hear: Any) -> None:
        for site, said in (("plant-1", frame), *more):
            await hear(SimpleNamespace(subject=f"hello.{site}", data=said))

    async def see(hello: Hello) -> None:
        seen.append(hello)

    transport = cast(NatsTransport, SimpleNamespace(subscribe=subscribe))
    asyncio.run(hear_hellos(transport, lambda site_id: key, see))
    return seen


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Our own lines: whatever else is collected as garbage meanwhile may speak too."""
    return [line.getMessage() for line in caplog.records if line.name == LOG]


def test_the_version_of_an_agent_is_a_few_words(tmp_path: Path) -> None:
    key = new_seed_file(tmp_path / "site.nk")
    hello = Hello(site_id="plant-1", version=HOSTILE, instance="a")
    (seen,) = heard(encode(hello, signer(tmp_path / "site.nk")), key)
    assert seen.version.startswith("9.9 2031-01-01 INFO all is well") and seen.version.isprintable()
    assert len(seen.version) == 40 and seen.instance == "a"


def test_what_is_no_hello_of_the_site_counts_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    key, other = new_seed_file(tmp_path / "site.nk"), tmp_path / "other.nk"
    new_seed_file(other)
    frames = (
        encode(Hello(site_id="plant-1", version="1"), signer(other)), encode(Hello(site_id="plant-1", version="1")),
        encode(Hello(site_id="plant-2", version="1"), signer(tmp_path / "site.nk")), HOSTILE.encode(),
        encode(Hello(site_id="plant-1", version="1" * presence.MAX_HELLO_BYTES), signer(tmp_path / "site.nk")),
    )
    assert [heard(frame, key) for frame in frames] == [[]] * 5
    lines = said(caplog)
    assert len(lines) == 5 and all(line.isprintable() for line in lines)


def test_a_site_that_says_hello_all_the_time_keeps_no_other_waiting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([*(0.0 for _ in range(1000)), *(presence.HELLO_WINDOW for _ in range(3))])
    monkeypatch.setattr(presence, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    key = new_seed_file(tmp_path / "site.nk")
    own, other = (
        encode(Hello(site_id=site, version="1"), signer(tmp_path / "site.nk")) for site in ("plant-1", "plant-2")
    )
    flood = [("plant-1", own)] * 998
    seen = heard(own, key, *flood, ("plant-2", other), ("plant-1", own))
    assert [each.site_id for each in seen] == ["plant-1"] * presence.MOST_HELLOS + ["plant-2", "plant-1"]
    assert said(caplog) == [
        "site plant-1 says hello all the time; most of it is not heard"
    ]


def test_a_count_that_the_store_does_not_take_is_one_line_and_made_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "ANSWER_SECONDS", 0.0)
    counts: list[int] = []

    def counted(site_id: str, agents: int) -> None:
        counts.append(agents)
        raise UnavailableError("the database is away")

    async def twice() -> None:
        lost: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, about: lost.append(about))

        async def say(*_: object) -> None:
            roll._heard["plant-1"] |= {"one": time.monotonic(), "two": time.monotonic()}

        roll = presence.Roll(cast(NatsTransport, SimpleNamespace(say=say)), counted)
        roll._alone["plant-1"] = "one"  # by a roll of before the second came
        for _ in range(2):
            roll.call("plant-1")
            await asyncio.gather(*roll._calls.values(), return_exceptions=False)
            await asyncio.sleep(0)
        assert not roll.is_alone("plant-1") and not lost

    asyncio.run(twice())
    assert counts == [2, 2]
    assert said(caplog) == ["how many agents site plant-1 has could not be noted: the database is away"] * 2


def test_a_second_agent_that_comes_when_the_first_was_long_counted_is_counted_too(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the first one's later words cost no further count."""
    monkeypatch.setattr(presence, "ANSWER_SECONDS", 0.0)
    there, counts, words = ["one"], list[int](), list[bytes]()

    def hello(instance: str) -> Hello:
        return Hello(site_id="plant-1", version="1", instance=instance)

    async def come_and_say() -> None:
        async def say(site_id: str, word: bytes) -> None:
            words.append(word)
            for instance in there if word == ROLL else ():
                roll.hear(hello(instance))

        roll = presence.Roll(cast(NatsTransport, SimpleNamespace(say=say)), lambda _, agents: counts.append(agents))
        for said in ("one", "one", "two"):
            there[:] = sorted({*there, said})
            roll.hear(hello(said))
            await asyncio.gather(*roll._calls.values())
            await asyncio.sleep(0)
            assert roll.is_alone("plant-1") == (said == "one")

    asyncio.run(come_and_say())
    assert counts == [1, 2] and words == [ROLL, ROLL, TWINS]


def test_an_agent_that_began_anew_is_no_twin_of_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only who says hello after the roll was called is there: a plant that restarts is not told to stop one of two."""
    monkeypatch.setattr(presence, "ANSWER_SECONDS", 0.0)
    there, counts, words = ["one"], list[int](), list[bytes]()

    async def begin_anew() -> None:
        async def say(site_id: str, word: bytes) -> None:
            words.append(word)
            for instance in there if word == ROLL else ():
                roll.hear(Hello(site_id=site_id, version="1", instance=instance))

        roll = presence.Roll(cast(NatsTransport, SimpleNamespace(say=say)), lambda _, agents: counts.append(agents))
        for instance in ("one", "two"):
            there[:] = [instance]
            roll.hear(Hello(site_id="plant-1", version="1", instance=instance))
            await asyncio.gather(*roll._calls.values())
            await asyncio.sleep(0)
            assert roll.is_alone("plant-1")

    asyncio.run(begin_anew())
    assert counts == [1, 1] and words == [ROLL, ROLL]
