"""Prefect's API as its own pages use it: with the secret, and with a token in every order."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import httpx

from tests.waiting import wait_until


def ask_prefect(works: Any, path: str, body: Any = None, method: str = "") -> Any:
    """Answer of Prefect to one who has its secret."""
    client = _client(works.environment["PREFECT_API_URL"], works.environment["PREFECT_API_AUTH_STRING"])
    wanted = method or ("GET" if body is None else "POST")
    answer = client.request(wanted, path, json=body)
    while answer.status_code == 503:  # its SQLite is busy; it says so and means: again
        time.sleep(1.0)
        answer = client.request(wanted, path, json=body)
    answer.raise_for_status()
    return answer.json() if answer.content else None


@cache
def _client(url: str, secret: str) -> httpx.Client:
    """A page that stays open: its token holds an hour, and no connection is kept that the server may close."""
    user, _, password = secret.partition(":")
    limits = httpx.Limits(max_keepalive_connections=0)
    client = httpx.Client(base_url=url, auth=(user, password), timeout=30, limits=limits)
    token = client.get("/csrf-token", params={"client": "journeys"}).json()["token"]
    client.headers.update({"Prefect-Csrf-Client": "journeys", "Prefect-Csrf-Token": token})
    return client


def until_prefect(holds: Callable[[], bool], what: str) -> None:
    """Wait until Prefect says something; an answer of its costs more than one of the store."""
    wait_until(holds, what, every=0.5)


def deployment(works: Any, plan: str) -> dict[str, Any] | None:
    """Deployment of a plan, once Prefect has it."""
    found = ask_prefect(works, "/deployments/filter", {"deployments": {"name": {"any_": [plan]}}})
    return dict(found[0]) if found else None
