"""What the client sends, and what it makes of answers: a desk on the loopback gives the ones that it is told to."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import StreamRequestHandler, TCPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from api.client import (
    ApiError,
    Client,
    InvalidRequestError,
    NotThereError,
    ServerError,
    SignedOutError,
    UnreachableError,
)
from api.client.client import QUIET_SECONDS
from services.contracts.history.events import Event
from tests.loopback import serving

PROBLEM = {"detail": "no", "status": 404}


class Desk:
    """Writes down each request; answers with the next of ``answers``, after the last with a 404."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, bytes]] = []
        self.elsewhere = ""  # what a redirect names
        self.link = ""  # where the next page is
        self.kind = "text/event-stream"
        self.missing = 0  # bytes of each body that are promised and do not come
        self.asked: list[tuple[str, dict[str, list[str]]]] = []
        self.headers: list[dict[str, str]] = []
        self.bodies: list[Any] = []
        desk = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                address = urlsplit(self.path)
                desk.asked.append((address.path, parse_qs(address.query)))
                desk.headers.append({name.lower(): value for name, value in self.headers.items()})
                desk.bodies.append(self.rfile.read(int(self.headers.get("Content-Length", 0))))
                status, body = desk.answers.pop(0) if desk.answers else (404, json.dumps(PROBLEM).encode())
                self.send_response(status)
                self.send_header("Content-Type", desk.kind)
                self.send_header("Content-Length", str(len(body) + desk.missing))
                if desk.link:
                    self.send_header("Link", desk.link)
                if desk.elsewhere:
                    self.send_header("Location", desk.elsewhere)
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, *_: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    with serving(made.http):
        yield made


@pytest.fixture
def client(desk: Desk) -> Client:
    return Client(desk.url, "blst_", sleep=lambda _: None)


SINCE, UNTIL = datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC)
ASKS: dict[str, tuple[Callable[[Client], Any], str, dict[str, str]]] = {
    "models without a champion": (
        lambda each: next(each.models(asset_type="rig", prefix="p", champion=False)), "/v1/models",
        {"asset_type": "rig", "prefix": "p", "champion": "False"},
    ),
    "plans": (lambda each: next(each.plans()), "/v1/admin/plans", {}),
    "plans that go on": (lambda each: next(each.plans(paused=False)), "/v1/admin/plans", {"paused": "False"}),
    "plans of before": (lambda each: next(each.plans(archived=True)), "/v1/admin/plans", {"archived": "True"}),
    "versions": (
        lambda each: next(each.plan_versions("a b", actor="ada", since=SINCE, until=UNTIL)),
        "/v1/admin/plans/a%20b/versions", {"actor": "ada", "since": SINCE.isoformat(), "until": UNTIL.isoformat()},
    ),
    "runs": (lambda each: next(each.runs(plan="p", status="failed")), "/v1/runs", {"plan": "p", "status": "failed"}),
    "all rounds": (lambda each: each.rounds("r"), "/v1/runs/r/rounds", {"after": "0"}),
    "later rounds": (lambda each: each.rounds("r", after=7), "/v1/runs/r/rounds", {"after": "7"}),
    "sites": (
        lambda each: next(each.sites(status="active", asset_type="rig")), "/v1/admin/sites",
        {"status": "active", "asset_type": "rig"},
    ),
    "codes": (
        lambda each: next(each.enrolment_codes(site="east", state="open")), "/v1/admin/enrolment-codes",
        {"site": "east", "state": "open"},
    ),
    "events": (
        lambda each: next(each.events("run.completed", plan="p", after=0)), "/v1/events",
        {"kind": "run.completed", "plan": "p"},
    ),
}


@pytest.mark.parametrize("name", ASKS)
def test_what_is_asked_for_is_in_the_address(desk: Desk, client: Client, name: str) -> None:
    ask, path, query = ASKS[name]
    with pytest.raises(Exception, match="^no$"):
        ask(client)
    assert desk.asked == [(path, {key: [value] for key, value in query.items()})]
    assert desk.headers[0].get("last-event-id") == ("0" if name == "events" else None)


def test_a_promotion_holds_the_gates_unless_it_is_told_otherwise(desk: Desk, client: Client) -> None:
    for more in ({}, {"ignore_gates": True, "version": "3"}):
        with pytest.raises(Exception, match="^no$"):
            client.promote("pumps", "a look", **more)
    assert [json.loads(body) for body in desk.bodies] == [
        {"version": "challenger", "reason": "a look", "ignore_gates": False},
        {"version": "3", "reason": "a look", "ignore_gates": True},
    ]
    keys = [headers["idempotency-key"] for headers in desk.headers]
    assert len(set(keys)) == 2 and min(map(len, keys)) == 32, "two promotions are two changes"


def test_what_gives_a_token_is_asked_before_each_request(desk: Desk) -> None:
    tokens = iter(["first", "second"])
    client = Client(desk.url, lambda: next(tokens))
    for _ in range(2):
        with pytest.raises(Exception, match="^no$"):
            client.run("r")
    assert [headers["authorization"] for headers in desk.headers] == ["Bearer first", "Bearer second"]


def test_a_token_read_from_a_file_holds_and_one_that_no_header_takes_is_shown_to_nobody(desk: Desk) -> None:
    with pytest.raises(NotThereError):
        Client(desk.url, "blst_secret\n").run("r")
    assert [headers["authorization"] for headers in desk.headers] == ["Bearer blst_secret"]
    for token in ("blst_secret\nblst_secret", "blst_secret\u2026"):
        client = Client(desk.url, token)
        with pytest.raises(SignedOutError, match="this is not a token") as refused:
            client.run("r")
        assert "secret" not in str(refused.value)
        with pytest.raises(SignedOutError, match="this is not a token"):
            next(client.events())
    with pytest.raises(InvalidRequestError, match="printable ASCII"):
        Client(desk.url, "blst_secret").trigger("pumps", key="a\nb")
    assert len(desk.headers) == 1


@pytest.mark.parametrize(
    ("status", "problem", "times"),
    [
        (409, {"detail": "under way", "code": "idempotency_unfinished"}, 3), (409, {"detail": "other"}, 1),
        (504, {}, 3), (429, {}, 1), (500, {}, 1), (503, {"code": "change_stored", "detail": "stored"}, 1),
        (503, {"code": "database_commit_unknown", "detail": "who knows"}, 1),
    ],
)
def test_a_change_is_asked_for_again_where_its_answer_may_come(
    desk: Desk, client: Client, status: int, problem: dict[str, str], times: int
) -> None:
    desk.answers = [(status, json.dumps(problem).encode())] * 4
    with pytest.raises(UnreachableError if status in (429, 504) else Exception):
        client.cancel("r", key="mine")
    assert [headers["idempotency-key"] for headers in desk.headers] == ["mine"] * times


@pytest.mark.parametrize(
    ("body", "said"), [
        (b"<html>", "is no JSON"), (b"[]", "no runs"), (b"", "no runs"), (b'{"runs": 3}', "no runs"),
        (b"[" * 100_000, "is no JSON"),
    ],
)
def test_what_another_program_answers_is_no_list(desk: Desk, client: Client, body: bytes, said: str) -> None:
    desk.answers = [(200, body)]
    with pytest.raises(ServerError, match=f"the answer .*{said}; is this address Ballast's"):
        next(client.runs())


@pytest.mark.parametrize("page", ["http://[", "/v1/runs", "/v1/runs?status=failed"])
def test_a_next_page_that_is_none_or_the_same_ends_a_list(desk: Desk, client: Client, page: str) -> None:
    """The last is the page that was asked for: the list would have no end."""
    desk.answers, desk.link = [(200, b'{"runs": []}')] * 2, f'<{page}>; rel="next"'
    with pytest.raises(ServerError, match="the answer's next page is none"):
        list(client.runs(status="failed"))
    assert len(desk.asked) <= 2


def test_a_host_that_no_name_can_have_does_not_answer() -> None:
    client = Client("https://oem..example", "t", attempts=1)
    for ask in (lambda: next(client.runs()), lambda: client._http.open("/v1/events", {}, 1.0)):
        with pytest.raises(UnreachableError, match="^https://oem..example does not answer"):
            ask()


def test_a_stream_is_cut_after_so_long_without_a_word(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server says every 15 s that it is there."""
    waits = list[object]()

    def stand_in(_: object, timeout: float | None = None) -> None:
        waits.append(timeout)
        raise KeyboardInterrupt

    monkeypatch.setattr(client._http._opener, "open", stand_in)
    with pytest.raises(KeyboardInterrupt):
        next(client.events())
    assert waits == [QUIET_SECONDS] and QUIET_SECONDS > 15.0


def test_a_stream_that_gave_an_event_is_asked_for_again_as_soon_as_at_first(desk: Desk) -> None:
    pauses, event = list[float](), Event(number=7, at=SINCE, kind="run.completed", plan="p")
    desk.answers = [(503, b""), (503, b""), (200, f"id: 7\ndata: {event.model_dump_json()}\n\n".encode())]
    client = Client(desk.url, "blst_", sleep=pauses.append)
    found = client.events(after=6)
    assert next(found) == event
    with pytest.raises(NotThereError):
        next(found)
    assert pauses == [1.0, 2.0, 0.5]
    assert [headers["last-event-id"] for headers in desk.headers] == ["6", "6", "6", "7"]


@pytest.mark.parametrize("status", [200, 503])
def test_an_answer_that_breaks_off_is_asked_for_again(desk: Desk, status: int) -> None:
    event = Event(number=7, at=SINCE, kind="run.completed", plan="p")
    client = Client(desk.url, "t", sleep=lambda _: None)
    desk.missing, desk.answers = 5, [(status, b'{"runs": [')] * 3
    with pytest.raises(UnreachableError):
        next(client.runs())
    assert len(desk.asked) == 3
    desk.answers = [(503, b'{"detail"'), (200, f"id: 7\ndata: {event.model_dump_json()}\n\n".encode())]
    assert next(client.events(after=6)) == event


def test_a_server_of_something_else_is_none_that_answers() -> None:
    class Other(StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"INFO {}\r\n")

    pauses = list[float]()

    def wait(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    with TCPServer(("127.0.0.1", 0), Other) as server, serving(server):
        url = f"http://127.0.0.1:{server.server_address[1]}"
        with pytest.raises(UnreachableError, match="does not answer"):
            next(Client(url, "t", attempts=1).runs())
        with pytest.raises(KeyboardInterrupt):
            next(Client(url, "t", sleep=wait).events())
    assert pauses == [1.0, 2.0, 4.0]


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_token_goes_to_the_address_that_was_given_alone(desk: Desk, status: int) -> None:
    """Whoever answers in the server's place, and sends the client on, would have it."""
    other = Desk()
    with serving(other.http):
        desk.elsewhere, desk.answers = f"{other.url}/v1/models", [(status, b"")] * 2
        client = Client(desk.url, "blst_secret", attempts=1)
        for ask in (lambda: next(client.models()), lambda: next(client.events())):
            with pytest.raises(ApiError):
                ask()
    assert len(desk.asked) == 2 and other.asked == []


def test_a_redirect_to_no_address_is_an_answer_like_any_other(desk: Desk, client: Client) -> None:
    desk.elsewhere, desk.answers = "http://[", [(302, b"")]
    with pytest.raises(ApiError, match="status 302"):
        next(client.models())


def test_a_token_for_this_host_goes_to_no_proxy_that_the_environment_names(
    desk: Desk, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would go in the open, and to another machine, whose loopback is its own."""
    proxy = Desk()
    with serving(proxy.http):
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("http_proxy", proxy.url)
        client = Client(desk.url, "blst_secret", attempts=1)
        for ask in (lambda: next(client.models()), lambda: next(client.events())):
            with pytest.raises(NotThereError):
                ask()
    assert len(desk.asked) == 2 and proxy.asked == []


@pytest.mark.parametrize("kind", ["text/html", "application/json; charset=utf-8", ""])
def test_what_answers_and_is_no_stream_of_events_is_told_and_not_asked_for_ever(
    desk: Desk, client: Client, kind: str
) -> None:
    """As the page of a proxy to sign in at."""
    desk.kind, desk.answers = kind, [(200, b"<html>sign in</html>")]
    with pytest.raises(ServerError, match="no stream of events"):
        next(client.events())
    assert len(desk.asked) == 1


def test_the_authority_that_is_named_is_the_one_that_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted, made = list[str | None](), ssl.create_default_context

    def context(*, cafile: str | None) -> ssl.SSLContext:
        trusted.append(cafile)
        return made()

    monkeypatch.setattr(ssl, "create_default_context", context)
    Client("https://ballast.example.com", "blst_", ca_file=tmp_path / "ca.pem")
    Client("https://ballast.example.com", "blst_")
    assert trusted == [str(tmp_path / "ca.pem"), None]


@pytest.mark.parametrize(("content", "why"), [(None, "No such file"), ("no certificate", "NO_CERTIFICATE")])
def test_a_file_that_holds_no_authority_is_named(tmp_path: Path, content: str | None, why: str) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(InvalidRequestError, match=f"ca.pem is no file of an authority's certificates: .*{why}"):
        Client("https://ballast.example.com", "blst_", ca_file=file)
