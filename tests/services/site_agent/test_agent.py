"""The agent's parts are put together once, told to stop by a signal, and put away whatever happens."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from services.contracts.errors import BallastError, UnavailableError
from services.contracts.wire.codec import decode
from services.contracts.wire.messages import Hello
from services.process import end_by_the_clock
from services.process.command_line import product_version
from services.site_agent import agent
from services.site_agent.cli import main
from services.site_agent.connection import link
from services.site_agent.connection.link_address import Address
from services.site_agent.contract_watch import WatchedRound
from services.site_agent.outgoing.egress import TooLargeError
from services.site_agent.outgoing.ledger import Ledger
from services.site_agent.settings import SiteSettings
from tests.ledgers import verified

During = Callable[[asyncio.Event, Any], Awaitable[None]]


class Link:
    """A link to a server that is there; ``during`` is what happens while it runs."""

    is_connected = True

    def __init__(self, during: During) -> None:
        self.during, self.hellos, self.given = during, [b""], [object()]

    def made(self, *given: Any) -> Link:
        self.given = list(given)
        return self

    async def run(self, stop: asyncio.Event, connect_timeout: float | None) -> None:
        self.given.append(connect_timeout)
        hello: Any = self.given[2]
        self.hellos = [hello(), hello()]
        await asyncio.sleep(0)
        await self.during(stop, self)


@pytest.fixture
def settings(
    tmp_path: Path, asset_type_file: Path, make_table: Any, write_csv: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
) -> SiteSettings:
    home = tmp_path / "home"
    data = ["--asset-type", str(asset_type_file), "--data", str(write_csv(make_table(60)))]
    assert main(["init", "--site-id", "plant-1", "--dir", str(home), *data]) == 0
    return SiteSettings.from_toml(home / "site.toml")


@pytest.fixture
def put_away(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was begun and ended, in its order."""
    done: list[str] = []
    warm_up, close = WatchedRound.warm_up, WatchedRound.close

    def warmed(self: WatchedRound) -> None:
        warm_up(self)
        done.append("warm")

    def closed(self: WatchedRound) -> None:
        close(self)
        done.append("closed")

    async def beat(_: object, is_connected: Callable[[], bool], told: Callable[[], str]) -> None:
        done.append(f"beat {is_connected()} {told()}")
        await asyncio.Event().wait()

    monkeypatch.setattr(WatchedRound, "warm_up", warmed)
    monkeypatch.setattr(WatchedRound, "close", closed)
    monkeypatch.setattr(agent, "beat", beat)
    monkeypatch.setattr(agent, "set_up_tracing", lambda _, name: done.append(f"traces {name}"))
    monkeypatch.setattr(agent, "end_tracing", lambda: done.append("traces end"))
    return done


async def serve(
    settings: SiteSettings, monkeypatch: pytest.MonkeyPatch, during: During, *more: Any
) -> Link:
    found = Link(during)
    monkeypatch.setattr(link, "PlantLink", found.made)
    try:
        await agent.serve(settings, *more)
    finally:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert all(each.cancelling() for each in left), "nothing goes on"
    return found


async def test_what_the_link_is_given_and_what_is_put_away_at_the_end(
    settings: SiteSettings, put_away: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []

    async def nothing(stop: asyncio.Event, at: Link) -> None:
        assert not stop.is_set()

    first = await serve(settings, monkeypatch, nothing, 7.0, heard.append)
    again = await serve(settings, monkeypatch, nothing)
    address, answer, _, connected, timeout = first.given
    assert isinstance(address, Address) and address.site_id == "plant-1" and callable(answer)
    assert (connected, timeout) == (heard.append, 7.0) and again.given[3:] == [None, None]
    hellos = [decode(frame, 1 << 20) for frame in (*first.hellos, again.hellos[0])]
    assert all(isinstance(each, Hello) and each.version == product_version() for each in hellos)
    instances = [each.instance for each in hellos if isinstance(each, Hello)]
    assert instances[0] == instances[1] != instances[2] and len(instances[0]) == 16
    assert [entry["message"] for entry in verified(settings.ledger)] == ["hello"] * 4
    once = ["traces ballast-site", "beat True asset type pump version 1", "warm", "traces end", "closed"]
    assert sorted(put_away) == sorted(2 * once) and put_away[3:5] == put_away[8:] == ["traces end", "closed"]


async def test_a_link_that_fails_leaves_nothing_open(
    settings: SiteSettings, put_away: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: asyncio.Event, __: Link) -> None:
        raise UnavailableError("no server answers")

    with pytest.raises(UnavailableError):
        await serve(settings, monkeypatch, fail)
    assert "warm" in put_away[:-2] and put_away[-2:] == ["traces end", "closed"]
    with Ledger(settings.ledger):
        """Nobody holds its lock."""


@pytest.mark.parametrize("ours", ["ledger", "exposure"])
def test_two_settings_of_one_ledger_or_account_have_one_agent(
    settings: SiteSettings, tmp_path: Path, ours: str
) -> None:
    """As of a plant that answers two OEMs: each would count what its own answers tell as if the other told nothing."""
    other = settings.model_copy(
        update={each: tmp_path / "home" / f"other-{each}" for each in ("ledger", "exposure") if each != ours}
    )
    link = tmp_path / "linked"
    link.symlink_to(getattr(settings, ours))
    linked = other.model_copy(update={ours: link})
    with agent.open_local_round(settings):
        for each in (other, linked):
            with pytest.raises(BallastError, match="another agent of this site is running: it holds") as refused:
                with agent.open_local_round(each):
                    """It is not opened."""
            assert refused.value.code == "conflict"
    with agent.open_local_round(other):
        """Nobody holds it any more."""


@pytest.fixture
def handlers() -> Iterator[None]:
    """The process's own handlers are in their places again afterwards."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_stops_it_and_the_next_one_is_not_waited_for(
    settings: SiteSettings, put_away: list[str], monkeypatch: pytest.MonkeyPatch, handlers: None, number: signal.Signals
) -> None:
    timers: list[Any] = []

    class Timer(SimpleNamespace):
        daemon = False

        def start(self) -> None:
            timers.append((self.wait, self.daemon, self.arguments))

    def timer(wait: float, _: object, arguments: tuple[int]) -> Timer:
        return Timer(wait=wait, arguments=arguments)

    before = signal.getsignal(number)

    async def told(stop: asyncio.Event, _: Link) -> None:
        assert signal.getsignal(number) != before
        signal.raise_signal(number)
        await asyncio.wait_for(stop.wait(), 20)
        assert {signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)} == {signal.SIG_DFL}

    monkeypatch.setattr(end_by_the_clock, "threading", SimpleNamespace(Timer=timer))
    await serve(settings, monkeypatch, told)
    assert timers == [(10.0, True, (0,))], "the clock ends it where a task takes too long, and holds up nobody"


def test_a_message_over_the_policys_limit_does_not_leave(settings: SiteSettings) -> None:
    text = settings.policy.read_text()
    assert "max_message_bytes" in text
    settings.policy.write_text("\n".join(
        "max_message_bytes = 1024" if line.startswith("max_message_bytes") else line for line in text.splitlines()
    ))
    with agent.open_local_round(settings) as (_, egress):
        egress.release(Hello(site_id="plant-1", version="1"))
        with pytest.raises(TooLargeError, match="the policy allows 1024"):
            egress.release(Hello(site_id="plant-1", version="1" * 2000))
