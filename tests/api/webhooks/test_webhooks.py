"""Webhooks: real messages to a real server, signed, in order, again after failures, and not for ever."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any

import pytest

from api.webhooks import delivery
from api.webhooks.delivery import MOST_FAILURES, Deliverer, wait_after
from services.contracts.access.identity import Role
from services.contracts.errors import InvalidInputError
from services.identity.webhook_signature import SIGNATURE, TIMESTAMP, check_signature
from tests.api.conftest import a_plan
from tests.api.webhooks.conftest import HOOKS, Receiver, add, due_now, happen
from tests.loopback import serving
from tests.oracles.store_walk import all_columns
from tests.ports import free_port


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


def test_a_message_to_this_host_goes_to_no_proxy_that_the_environment_names(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the plants' real names, and would be read on the way."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    assert delivery.post(receiver.url, b'{"kind":"run.begun"}', {}) == 204
    assert receiver.kinds() == ["run.begun"]


def test_why_nobody_answered_tells_a_name_a_port_and_a_certificate_apart(world: Any, receiver: Receiver) -> None:
    """And quotes nothing of what speaks another protocol there."""
    where = receiver.url.removeprefix("http://")

    class Mail(StreamRequestHandler):
        def handle(self) -> None:
            self.rfile.readline()
            self.wfile.write(b"220 inner.example ready\r\n")

    mail = ThreadingTCPServer(("127.0.0.1", 0), Mail)
    with serving(mail):
        urls = {
            f"http://127.0.0.1:{free_port()}/": "ConnectError: All connection attempts failed",
            f"https://{where}": "ConnectError: [SSL: ", "https://nobody.invalid/": "ConnectError: [Errno ",
            f"http://127.0.0.1:{mail.server_address[1]}/": "RemoteProtocolError",
        }
        for url, why in urls.items():
            hook = add(world, url)["webhook"]["webhook_id"]
            said = world.call(Role.ADMINISTRATOR, "POST", f"{HOOKS}/{hook}/test").json()
            assert not said["delivered"] and said["reason"].startswith(f"no answer: {why}"), url
            assert "inner.example" not in said["reason"]


@pytest.mark.parametrize("proxy", [
    "socks5://ada:word@127.0.0.1:1", "ftp://ada:word@127.0.0.1:1", "http://[", "http://127.0.0.1:99999",
])
def test_a_proxy_that_cannot_be_used_is_a_failure_like_any_other(
    world: Any, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    """Told without its password, and counted, so that the webhook is tried less and less often and disabled."""
    for name in ("no_proxy", "NO_PROXY", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("all_proxy", proxy)
    hook = add(world, f"https://127.0.0.1:{free_port()}/")["webhook"]["webhook_id"]
    said = world.call(Role.ADMINISTRATOR, "POST", f"{HOOKS}/{hook}/test")
    assert said.status_code == 200 and not said.json()["delivered"]
    assert said.json()["reason"].startswith("no answer: ") and "word" not in said.text
    happen(world, "one")
    Deliverer(world.backend).look()
    assert world.backend.store.webhooks.get(hook).failures == 1


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


def test_a_failure_after_events_that_arrived_is_the_first_again(
    world: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a receiver that was away, is back, and takes no more than so many at once: its next try is soon."""
    waits: list[int] = []

    def no_wait(failures: int) -> float:
        waits.append(failures)
        return 0.0

    monkeypatch.setattr(delivery, "wait_after", no_wait)
    add(world, receiver.url)
    happen(world, "pumps", "rigs")
    answers = iter([503, 503, 503, 204, 204, 429, 204, 204])
    deliverer = Deliverer(world.backend, lambda *_: next(answers))
    for _ in range(5):
        due_now(world)
        deliverer.look()
    assert waits == [0, 1, 2, 0] and next(answers, None) is None


def test_what_arrived_before_a_failure_is_not_sent_again(world: Any, receiver: Receiver) -> None:
    """Also where events that concern nobody there lie between: their numbers are no steps of one."""
    def send(_: str, body: bytes, __: dict[str, str]) -> int:
        taken.append(json.loads(body)["plan"])
        return 503 if taken.count("plan-3") == 1 and taken[-1] == "plan-3" else 204

    taken: list[str] = []
    add(world, receiver.url, kinds=["run.failed"])
    happen(world, *(f"plan-{number}" for number in range(1, 5)))
    for _ in range(2):
        Deliverer(world.backend, send).look()
        due_now(world)
    assert taken == ["plan-1", "plan-2", "plan-3", "plan-3", "plan-4"]


def test_nothing_is_lost_where_the_oldest_event_that_is_kept_is_the_next_one(world: Any, receiver: Receiver) -> None:
    add(world, receiver.url)
    happen(world, "one")
    Deliverer(world.backend).look()
    store = world.backend.store
    store.runs.begin_run(store.runs.create_run(a_plan("two")).run_id, ())
    store.retention.drop_events(datetime.now(UTC) + timedelta(minutes=1))  # all but the newest
    Deliverer(world.backend).look()
    assert receiver.kinds() == ["run.begun", "run.failed", "run.begun"]


def test_a_receiver_may_be_away_for_two_hours() -> None:
    assert 2.0 <= sum(map(wait_after, range(MOST_FAILURES - 1))) / 3600.0 < 2.5


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


def test_after_repeated_failure_it_is_disabled_until_somebody_enables_it(world: Any, receiver: Receiver) -> None:
    hook = add(world, receiver.url)["webhook"]["webhook_id"]
    happen(world, "one")
    receiver.status = 500
    for _ in range(MOST_FAILURES + 3):
        due_now(world)
        Deliverer(world.backend).look()
    assert len(receiver.heard) == MOST_FAILURES
    assert world.events()[0] == "webhook.disable" and world.events().count("webhook.disable") == 1
    receiver.status = 200
    due_now(world)
    Deliverer(world.backend).look()
    assert len(receiver.heard) == MOST_FAILURES
    enabled = world.call(Role.ADMINISTRATOR, "POST", f"{HOOKS}/{hook}/enable")
    assert enabled.status_code == 200 and world.backend.store.webhooks.get(hook).failures == 0
    Deliverer(world.backend).look()
    assert receiver.kinds()[MOST_FAILURES:] == ["run.begun", "run.failed"]
