"""A site that answered real tasks, its page over real HTTP, and somebody who reads it."""

from __future__ import annotations

import http.client
import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from services.site_agent.console.server import SiteConsole
from services.site_agent.health import note
from services.site_agent.outgoing.ledger_check import entry_hash
from services.site_agent.rules.policy_file import default_policy_text
from services.site_agent.settings import SiteSettings
from tests.services.site_agent.conftest import RUN, TWO_CLASSES


@dataclass
class Reader:
    """Somebody with a browser: what is asked, and the cookie that was set."""

    console: SiteConsole
    cookie: str = ""

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.console.server_port, timeout=10)
        try:
            connection.request(method, path, headers={"Cookie": self.cookie} | headers if self.cookie else headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()
        finally:
            connection.close()

    def enter(self) -> Reader:
        address = urlsplit(self.console.first_address)
        status, headers, _ = self.ask(f"{address.path}?{address.query}")
        assert (status, headers["Location"]) == (303, "/")
        self.cookie = headers["Set-Cookie"].split(";")[0]
        return self

    def text(self, path: str) -> str:
        """Words of a page that is there, without its markup, one blank between them."""
        status, _, content = self.ask(path)
        assert status == 200, content
        return " ".join(re.sub(r"<[^>]+>", " ", content).split())

    def json(self, path: str) -> Any:
        status, headers, content = self.ask(path)
        assert (status, headers["Content-Type"]) == (200, "application/json; charset=utf-8")
        return json.loads(content)


@pytest.fixture
def look() -> Iterator[Callable[..., Reader]]:
    """Serve the page of a folder's settings on a free port."""
    running = []

    def serve(settings: SiteSettings) -> Reader:
        console = SiteConsole(settings, 0)
        thread = threading.Thread(target=console.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        running.append((console, thread))
        return Reader(console)

    yield serve
    for console, thread in running:
        console.shutdown()
        console.server_close()
        thread.join(10)


def settings_of(folder: Path, **policy: Any) -> SiteSettings:
    """Settings of a site's folder, with the files that ``init`` writes."""
    folder.mkdir(exist_ok=True)
    (folder / "asset_type.toml").write_text(TWO_CLASSES)
    text = default_policy_text(("pump",), ("level-bundle", "fdr-admm"), **policy)
    (folder / "policy.toml").write_text(text)
    (folder / "site.toml").write_text(
        'site_id = "plant-1"\nservers = ["tls://oem.example:4222"]\n[data]\nkind = "csv"\npath = "data.csv"\n'
    )
    return SiteSettings.from_toml(folder / "site.toml")


def answer(site: Any, run: str, number: int, weights: np.ndarray) -> Any:
    """A round of a run, asked at weights (P + 1,)."""
    at = weights[np.newaxis]
    return site.ask("round", run_id=run, round=number, arrays={"point": at, "centre": at, "penalty": np.ones(1)})


@pytest.fixture
def answered(make_site: Callable[..., Any]) -> Any:
    """A site that took part in two runs, refused a task and is connected."""
    site = make_site()
    for run in (RUN, "b" * 32):
        assert site.ask(run_id=run, round=0).type == "update"
        for number, weights in enumerate(np.eye(4)[:3], start=1):
            assert answer(site, run, number, weights).type == "update"
    assert site.refusal_code(method="fedavg") == "method_not_allowed"
    note(settings_of(site.folder)).touch()
    return site


@pytest.fixture
def seen(answered: Any, look: Callable[..., Reader]) -> Reader:
    return look(settings_of(answered.folder)).enter()


def content_of(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Files with their times, but for the index of SQLite's log, in which a reader marks how far it reads."""
    there = [path for path in folder.iterdir() if not path.name.endswith("-shm")]
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in there}


def forged(previous: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """An entry as somebody writes it who may write to the folder: its hash is right."""
    made = {"sequence": previous["sequence"] + 1, "previous": previous["hash"], **fields}
    return made | {"hash": entry_hash(made)}
