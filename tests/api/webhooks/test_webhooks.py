"""Webhooks: real messages to a real server, signed, in order, again after failures, and not for ever."""

from __future__ import annotations

import http.server
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import update

from api.webhooks import delivery
from api.webhooks.delivery import MOST_FAILURES, Deliverer, wait_after
from services.contracts.access.identity import Role
from services.contracts.errors import InvalidInputError
from services.identity.webhook_signature import SIGNATURE, TIMESTAMP, check_signature
from services.round_store.operation_tables import WebhookRow
from tests.api.conftest import a_plan
from tests.oracles.store_walk import all_columns
from tests.waiting import PATIENCE, wait_until

HOOKS = "/v1/admin/webhooks"


@dataclass
class Receiver:
    """A server that keeps what it is sent."""

    url: str = ""
    status: int = 204
    heard: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    def kinds(self) -> list[str]:
        return [json.loads(body)["kind"] for _, body in self.heard]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # noqa: N802
            found.heard.append((dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(found.status)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield found
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what a test asks for is sent."""
    monkeypatch.setattr(delivery, "LOOK_SECONDS", 3600.0)


def add(world: Any, url: str, **more: Any) -> Any:
    answer = world.call(Role.ADMINISTRATOR, "POST", HOOKS, {"url": url} | more)
    assert answer.status_code == 201, answer.text
    return answer.json()


def happen(world: Any, *names: str) -> None:
    for name in names:
        run = world.backend.store.runs.create_run(a_plan(name))
        world.backend.store.runs.begin_run(run.run_id, ())
        world.backend.store.runs.finish_run(run.run_id, "failed", "no site")


def due_now(world: Any) -> None:
    with world.backend.store.database.write() as session:
        session.execute(update(WebhookRow).values(due_at=datetime.now(UTC) - timedelta(seconds=1)))


def test_events_arrive_signed_and_in_order(any_world: Any, receiver: Receiver) -> None:
    happen(any_world, "before")
    secret = add(any_world, receiver.url)["secret"]
    happen(any_world, "one", "two")
    deliverer = Deliverer(any_world.backend)
    deliverer.look()
    deliverer.look()
    assert receiver.kinds() == ["run.begun", "run.failed"] * 2, "from its beginning on, each once"
    numbers = [json.loads(body)["number"] for _, body in receiver.heard]
    assert numbers == sorted(set(numbers))
    for headers, body in receiver.heard:
        check_signature(secret, headers[TIMESTAMP], body, headers[SIGNATURE], time.time())
        for changed in (
            (secret, headers[TIMESTAMP], body + b" ", headers[SIGNATURE], time.time()),
            (secret + "0", headers[TIMESTAMP], body, headers[SIGNATURE], time.time()),
            (secret, str(int(headers[TIMESTAMP]) + 1), body, headers[SIGNATURE], time.time()),
            (secret, headers[TIMESTAMP], body, headers[SIGNATURE], time.time() + 301),
            (secret, headers[TIMESTAMP], body, headers[SIGNATURE], time.time() - 310),
            (secret, headers[TIMESTAMP], body, "", time.time()),
        ):
            with pytest.raises(InvalidInputError):
                check_signature(*changed)
    cells = [str(cell.value) for cell in all_columns(any_world.backend.store.engine)]
    assert not any(secret in cell for cell in cells), "the database has no secret"
    shown = any_world.call(Role.ADMINISTRATOR, "GET", HOOKS)
    assert secret not in shown.text and shown.json()["webhooks"][0]["last_number"] == numbers[-1]


def test_only_the_kinds_that_were_asked_for(world: Any, receiver: Receiver) -> None:
    add(world, receiver.url, kinds=["run.failed"])
    happen(world, "one")
    Deliverer(world.backend).look()
    happen(world, "two")
    run = world.backend.store.runs.create_run(a_plan("three"))
    world.backend.store.runs.begin_run(run.run_id, ())
    Deliverer(world.backend).look()
    assert receiver.kinds() == ["run.failed"] * 2
    (hook,) = world.backend.store.webhooks.list_webhooks()
    assert hook.last_number == world.backend.store.events.span()[1], "what concerns nobody there is passed over"


def test_a_failure_is_tried_again_later_and_nothing_is_left_out(world: Any, receiver: Receiver) -> None:
    add(world, receiver.url)
    happen(world, "one")
    for status in (500, 404, 302):
        receiver.status = status
        due_now(world)
        Deliverer(world.backend).look()
        Deliverer(world.backend).look()  # not yet due
    assert receiver.kinds() == ["run.begun"] * 3, "a redirect is not followed"
    (hook,) = world.backend.store.webhooks.list_webhooks()
    assert (hook.failures, hook.last_failure, hook.delivered_at) == (3, "it answered 302", None)
    assert hook.due_at > datetime.now(UTC)
    receiver.status = 200
    due_now(world)
    Deliverer(world.backend).look()
    assert receiver.kinds() == ["run.begun"] * 4 + ["run.failed"]
    (hook,) = world.backend.store.webhooks.list_webhooks()
    assert (hook.failures, hook.last_failure) == (0, "") and hook.delivered_at is not None
    assert [wait_after(n) for n in (0, 1, 5, 20)] == [1.0, 2.0, 32.0, 3600.0]


def test_more_events_than_a_turn_takes_go_on_in_the_next(
    world: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "AT_ONCE", 2)
    add(world, receiver.url)
    (before,) = world.backend.store.webhooks.list_webhooks()
    happen(world, "one", "two", "three")
    for sent in (2, 4, 6, 6):
        Deliverer(world.backend).look()
        assert receiver.kinds() == ["run.begun", "run.failed"] * (sent // 2)
    Deliverer(world.backend)._turn(before)
    assert len(receiver.heard) == 6, "another process has sent them since this one looked"


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


def test_after_repeated_failure_it_is_disabled_until_somebody_enables_it(world: Any, receiver: Receiver) -> None:
    hook = add(world, receiver.url)["webhook"]["webhook_id"]
    happen(world, "one")
    receiver.status = 500
    for _ in range(MOST_FAILURES + 3):
        due_now(world)
        Deliverer(world.backend).look()
    assert len(receiver.heard) == MOST_FAILURES
    assert world.events()[0] == "webhook.disable"
    receiver.status = 200
    due_now(world)
    Deliverer(world.backend).look()
    assert len(receiver.heard) == MOST_FAILURES
    enabled = world.call(Role.ADMINISTRATOR, "POST", f"{HOOKS}/{hook}/enable")
    assert enabled.status_code == 200 and world.backend.store.webhooks.get(hook).failures == 0
    Deliverer(world.backend).look()
    assert receiver.kinds()[MOST_FAILURES:] == ["run.begun", "run.failed"]


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


def test_a_test_message_says_how_it_was_taken(world: Any, receiver: Receiver) -> None:
    hook = add(world, receiver.url)["webhook"]["webhook_id"]

    def tried() -> Any:
        return world.call(Role.ADMINISTRATOR, "POST", f"{HOOKS}/{hook}/test").json()

    assert tried() == {"delivered": True, "status": 204, "reason": ""}
    receiver.status = 503
    assert tried() == {"delivered": False, "status": 503, "reason": "it answered 503"}
    assert receiver.kinds() == ["webhook.test"] * 2 and all(SIGNATURE in headers for headers, _ in receiver.heard)
    assert world.call(Role.ADMINISTRATOR, "DELETE", f"{HOOKS}/{hook}").status_code == 200
    assert world.call(Role.ADMINISTRATOR, "POST", f"{HOOKS}/{hook}/test").status_code == 404
    assert world.events() == ["webhook.remove", "webhook.add"]


def test_who_changes_webhooks_and_why_is_noted_and_what_changes_nothing_is_not(world: Any) -> None:
    trail, kinds = world.backend.store.audit, ["run.failed", "run.begun", "run.failed"]
    one, other = (add(world, f"https://watch.example.com/{name}", kinds=kinds)["webhook"] for name in "ab")
    assert one["kinds"] == kinds[:2] and one["created_by"] == trail.list_events(limit=1)[0].actor

    def asked(method: str, path: str, reason: str) -> None:
        assert world.call(Role.ADMINISTRATOR, method, f"{HOOKS}/{path}", {"reason": reason}).status_code == 200

    def listed(enabled: str) -> list[str]:
        answer = world.call(Role.ADMINISTRATOR, "GET", f"{HOOKS}?enabled={enabled}")
        return [each["webhook_id"] for each in answer.json()["webhooks"]]

    asked("POST", f"{one['webhook_id']}/enable", "to be sure")
    assert trail.list_events(action="webhook.enable") == [], "it was enabled already"
    with world.backend.store.database.write() as session:
        session.execute(update(WebhookRow).where(WebhookRow.webhook_id == one["webhook_id"]).values(
            disabled_at=datetime.now(UTC)))
    assert (listed("false"), listed("true")) == ([one["webhook_id"]], [other["webhook_id"]])
    asked("POST", f"{one['webhook_id']}/enable", "it answers again")
    asked("DELETE", other["webhook_id"], "nobody reads it")
    removed, enabled = trail.list_events(limit=2)
    assert (enabled.action, enabled.reason) == ("webhook.enable", "it answers again")
    assert enabled.before["disabled_at"] is not None and enabled.after["disabled_at"] is None
    assert (removed.action, removed.reason) == ("webhook.remove", "nobody reads it")
    assert (removed.before["url"], removed.after) == (other["url"], None)


@pytest.mark.parametrize("url", [
    "http://hooks.example.com/x", "http://192.168.0.7/x", "ftp://localhost/x", "https://user:pass@example.com/",
    "https://", "nothing", "https://example.com/#part", "https://example.com:99999/", "https://exämple.com/",
])
def test_an_address_that_is_not_taken(lasting_world: Any, url: str) -> None:
    before = lasting_world.snapshot()
    answer = lasting_world.call(Role.ADMINISTRATOR, "POST", HOOKS, {"url": url})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
    assert lasting_world.snapshot() == before


def test_an_address_of_the_own_network_is_the_operators_choice(world: Any) -> None:
    for url in ("https://192.168.0.7/x", "https://10.0.0.1:8443/", "http://[::1]:9/", "http://localhost:9/"):
        add(world, url)
    again = world.call(Role.ADMINISTRATOR, "POST", HOOKS, {"url": "https://192.168.0.7/x"})
    assert (again.status_code, again.json()["code"]) == (409, "conflict")


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
