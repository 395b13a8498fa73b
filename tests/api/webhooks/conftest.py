"""A server that is sent events, and what happens in a world that has webhooks."""

from __future__ import annotations

import http.server
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update

from api.webhooks import delivery
from services.contracts.access.identity import Role
from services.round_store.tables.operation import WebhookRow
from tests.api.conftest import a_plan
from tests.loopback import serving

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

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with serving(server):
        found.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
        yield found


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
