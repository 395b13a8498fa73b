"""Whoever is slow, dead or always busy holds up no other webhook."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from api.backend.wiring import open_backend
from api.webhooks import delivery
from api.webhooks.delivery import Deliverer
from services.contracts.access.identity import Role
from services.contracts.errors import UnavailableError
from services.identity.service_keys import WEBHOOKS
from services.round_store.tables.operation import WebhookRow
from tests.api.webhooks.conftest import HOOKS, Receiver, add, due_now, happen
from tests.waiting import PATIENCE, wait_until


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # the death that is meant
def test_who_dies_in_its_turn_keeps_a_webhook_for_a_minute(world: Any, receiver: Receiver) -> None:
    def send(url: str, body: bytes, headers: dict[str, str]) -> int:
        delivery.post(url, body, headers)
        raise SystemExit  # ends its thread

    add(world, receiver.url)
    happen(world, "one")
    Deliverer(world.backend, send).look()
    (hook,) = world.backend.store.webhooks.list_webhooks()
    left = (hook.due_at - datetime.now(UTC)).total_seconds()
    assert 2 * delivery.TIMEOUT_SECONDS < left <= 60.0
    Deliverer(world.backend).look()  # not yet
    due_now(world)
    Deliverer(world.backend).look()
    assert receiver.kinds() == ["run.begun", "run.begun", "run.failed"]


def test_a_try_that_was_put_off_before_the_clock_was_put_back_is_due(world: Any, receiver: Receiver) -> None:
    add(world, receiver.url)
    happen(world, "one")
    for ahead, heard in ((timedelta(seconds=delivery.LONGEST_WAIT), 0), (timedelta(days=1), 2)):
        with world.backend.store.database.write() as session:
            session.execute(update(WebhookRow).values(due_at=datetime.now(UTC) + ahead))
        Deliverer(world.backend).look()
        assert len(receiver.heard) == heard


def test_two_processes_send_each_event_once(world: Any, receiver: Receiver) -> None:
    add(world, receiver.url)
    happen(world, *(f"plan-{number}" for number in range(5)))
    threads = [threading.Thread(target=Deliverer(world.backend).look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    Deliverer(world.backend).look()
    numbers = [json.loads(body)["number"] for _, body in receiver.heard]
    assert numbers == sorted(set(numbers)) and len(numbers) == 10


def test_an_answer_that_trickles_in_holds_up_nobody(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "TIMEOUT_SECONDS", 0.5)
    gone = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def trickle() -> None:
            with listener.accept()[0] as one:
                one.recv(65536)
                one.sendall(b"HTTP/1.1 200 OK\r\n")
                for _ in range(50):
                    if gone.wait(0.1):
                        return
                    with suppress(OSError):
                        one.sendall(b"X-More: y\r\n")

        thread = threading.Thread(target=trickle)
        thread.start()
        hook = add(world, f"http://127.0.0.1:{listener.getsockname()[1]}/")["webhook"]["webhook_id"]
        try:
            answer = world.call(Role.ADMINISTRATOR, "POST", f"{HOOKS}/{hook}/test")
        finally:
            gone.set()
            thread.join(PATIENCE)
    assert answer.json() == {"delivered": False, "status": None, "reason": "no answer: TimeoutError"}


@pytest.mark.parametrize("host", ["a..b", "a" * 64 + ".example"])
def test_a_host_that_is_no_name_is_refused_and_holds_up_no_other(world: Any, receiver: Receiver, host: str) -> None:
    refused = world.call(Role.ADMINISTRATOR, "POST", HOOKS, {"url": f"https://{host}/"})
    assert refused.status_code == 422 and "https://host/path" in refused.json()["detail"]
    first = add(world, receiver.url + "/first")["webhook"]["webhook_id"]
    with world.backend.store.database.write() as session:  # as one of before
        session.execute(update(WebhookRow).values(url=f"https://{host}/"))
    add(world, receiver.url)
    happen(world, "one")
    Deliverer(world.backend).look()
    assert receiver.kinds() == ["run.begun", "run.failed"]
    assert world.backend.store.webhooks.get(first).last_failure.startswith("no answer: ")


def test_a_slow_address_holds_up_no_other(world: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that takes a message and says nothing: what goes to another does not wait until its time has run out."""
    monkeypatch.setattr(delivery, "TIMEOUT_SECONDS", PATIENCE / 2)
    webhooks, begun = world.backend.store.webhooks, ["run.begun", "run.failed"]
    deliverer = Deliverer(world.backend)

    def is_sent(kinds: list[str]) -> bool:
        deliverer.begin()  # looks go on: the last turn of the one that answers may not be quite over
        return receiver.kinds() == kinds

    with socket.create_server(("127.0.0.1", 0)) as silent:
        slow = add(world, f"http://127.0.0.1:{silent.getsockname()[1]}/")["webhook"]
        add(world, receiver.url)
        for count in (1, 2):
            happen(world, f"plan-{count}")
            wait_until(partial(is_sent, begun * count), "message to the one that answers")
        found = webhooks.get(slow["webhook_id"])
        assert (found.failures, found.last_number) == (0, slow["last_number"]), "it still has its first turn"
    deliverer.look()  # its connection ended with the server
    assert webhooks.get(slow["webhook_id"]).last_failure.startswith("no answer: ")


def test_a_slow_address_gives_the_others_their_turn(
    world: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slowly(*_: object) -> int:
        time.sleep(0.01)
        return 204

    before = add(world, receiver.url)["webhook"]["last_number"]
    happen(world, "one", "two")
    with monkeypatch.context() as patch:
        patch.setattr(delivery, "TIMEOUT_SECONDS", 0.0)
        Deliverer(world.backend, slowly).look()
    (hook,) = world.backend.store.webhooks.list_webhooks()
    assert hook.last_number == before + 1, "one event, and the next webhook has its turn"
    Deliverer(world.backend).look()
    assert receiver.kinds() == ["run.failed", "run.begun", "run.failed"]


def test_as_many_that_fail_as_have_their_turn_at_once_hold_up_no_other(
    world: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for its next try takes no place, and who has waited longest is served first."""
    monkeypatch.setattr(delivery, "WORKERS", 3)
    for number in range(20):  # by chance none of them comes before the one that answers: 1 in 20
        add(world, f"http://127.0.0.1:9/{number}")
    add(world, receiver.url)
    happen(world, "one")

    def failing(url: str, body: bytes, headers: dict[str, str]) -> int:
        return delivery.post(url, body, headers) if url == receiver.url else 500

    deliverer = Deliverer(world.backend, failing)
    for _ in range(7):
        deliverer.look()
    assert receiver.kinds() == ["run.begun", "run.failed"]
    assert {hook.failures for hook in world.backend.store.webhooks.list_webhooks()} == {0, 1}


def test_those_that_are_always_busy_leave_a_turn_to_the_others(
    world: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each turn ends after one event, so that something is due to all of them at every look."""
    monkeypatch.setattr(delivery, "WORKERS", 1)
    monkeypatch.setattr(delivery, "TIMEOUT_SECONDS", -1.0)
    for number in range(3):
        add(world, f"http://127.0.0.1:9/{number}")
    happen(world, *(f"plan-{number}" for number in range(4)))
    asked: list[str] = []

    def busy(url: str, *_: object) -> int:
        asked.append(url)
        return 204

    deliverer = Deliverer(world.backend, busy)
    for _ in range(6):
        deliverer.look()
    assert sorted(asked[:3]) == sorted(asked[3:]) and len(set(asked)) == 3


def test_a_webhook_that_is_removed_in_its_turn_is_sent_no_more(world: Any, receiver: Receiver) -> None:
    """The turn may have a hundred events; they name plants."""
    hook = add(world, receiver.url)["webhook"]["webhook_id"]
    happen(world, *(f"plan-{number}" for number in range(5)))

    def send(url: str, body: bytes, headers: dict[str, str]) -> int:
        status = delivery.post(url, body, headers)
        if len(receiver.heard) == 3:
            assert world.call(Role.ADMINISTRATOR, "DELETE", f"{HOOKS}/{hook}").status_code == 200
        return status

    Deliverer(world.backend, send).look()
    assert len(receiver.heard) == 3
    assert world.backend.store.webhooks.list_webhooks() == []


@pytest.mark.parametrize("kinds", [[], ["run.failed"]])
def test_who_was_away_for_longer_than_events_are_kept_is_told_so(
    world: Any, receiver: Receiver, kinds: list[str]
) -> None:
    hook = add(world, receiver.url, kinds=kinds)["webhook"]["webhook_id"]
    happen(world, "one", "two")
    Deliverer(world.backend).look()
    receiver.heard.clear()
    happen(world, "three", "four", "five")
    store = world.backend.store
    assert store.retention.drop_events(datetime.now(UTC) + timedelta(minutes=1)) > 0  # all but the newest
    receiver.status = 503
    Deliverer(world.backend).look()
    receiver.status = 204
    assert store.webhooks.get(hook).failures == 1
    due_now(world)
    for _ in range(2):
        Deliverer(world.backend).look()
    told = [json.loads(body) for _, body in receiver.heard]
    newest = store.events.span()[1]
    assert [each["kind"] for each in told] == ["events.lost", "events.lost", "run.failed"]  # the first was not taken
    assert [each["number"] for each in told] == [newest - 1, newest - 1, newest]
    happen(world, "six")
    Deliverer(world.backend).look()
    assert "events.lost" not in receiver.kinds()[3:]


def test_the_authorities_are_not_read_for_each_message(
    world: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of ten thousand messages that waited for a receiver it would be minutes of the API's time."""
    read: list[bool] = []
    make = ssl.create_default_context

    def counted(*given: Any, **more: Any) -> ssl.SSLContext:
        read.append(True)
        return make(*given, **more)

    monkeypatch.setattr(ssl, "create_default_context", counted)
    add(world, receiver.url)
    happen(world, "a", "b", "c")
    Deliverer(world.backend).look()
    assert len(receiver.heard) == 6 and len(read) <= 2, "twice where a minute ends in between"


def test_a_process_with_another_key_takes_no_turn_of_those_that_have_the_service_s(
    world: Any, receiver: Receiver, tmp_path: Path
) -> None:
    """As one that began before the key was replaced: it would hold the webhook for a minute, and send nothing."""
    home = tmp_path / "other"
    home.mkdir(mode=0o700)
    (home / WEBHOOKS).write_text("ab" * 32 + "\n")
    (home / WEBHOOKS).chmod(0o600)
    add(world, receiver.url)
    happen(world, "pumps")
    with open_backend(world.settings.model_copy(update={"home": home})) as other:
        with pytest.raises(UnavailableError):
            delivery.signing_key(other)
        Deliverer(other).look()
    Deliverer(world.backend).look()
    assert receiver.kinds() == ["run.begun", "run.failed"]


def test_who_stood_still_in_its_turn_takes_nothing_back(any_world: Any, receiver: Receiver) -> None:
    """Another has had its turn meanwhile: what that one sent is not sent again, nor anything beside its turn."""
    held, goes_on = threading.Event(), threading.Event()

    def send(url: str, body: bytes, headers: dict[str, str]) -> int:
        status = delivery.post(url, body, headers)
        held.set()
        assert goes_on.wait(PATIENCE)
        return status

    add(any_world, receiver.url)
    happen(any_world, "one", "two")
    late = threading.Thread(target=Deliverer(any_world.backend, send).look)
    late.start()
    assert held.wait(PATIENCE)
    due_now(any_world)  # a minute later
    Deliverer(any_world.backend).look()
    before = any_world.backend.store.webhooks.list_webhooks()
    goes_on.set()
    late.join()
    assert any_world.backend.store.webhooks.list_webhooks() == before
    Deliverer(any_world.backend).look()
    numbers = [json.loads(body)["number"] for _, body in receiver.heard]
    assert numbers[1:] == sorted(set(numbers)) and len(numbers) == 5
