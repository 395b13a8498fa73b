"""Prefect's API as its own pages use it: with the secret, and with a token in every order."""

from __future__ import annotations

import time
from typing import Any

import httpx


def ask_prefect(works: Any, path: str, body: Any = None, method: str = "") -> Any:
    """Answer of Prefect to one who has its secret."""
    user, password = works.environment["PREFECT_API_AUTH_STRING"].split(":")
    with httpx.Client(base_url=works.environment["PREFECT_API_URL"], auth=(user, password), timeout=30) as client:
        token = client.get("/csrf-token", params={"client": "journeys"}).json()["token"]
        guards = {"Prefect-Csrf-Client": "journeys", "Prefect-Csrf-Token": token}
        wanted = method or ("GET" if body is None else "POST")
        answer = client.request(wanted, path, json=body, headers=guards)
        while answer.status_code == 503:  # its SQLite is busy; it says so and means: again
            time.sleep(1.0)
            answer = client.request(wanted, path, json=body, headers=guards)
        answer.raise_for_status()
        return answer.json() if answer.content else None


def deployment(works: Any, plan: str) -> dict[str, Any] | None:
    """Deployment of a plan, once Prefect has it."""
    found = ask_prefect(works, "/deployments/filter", {"deployments": {"name": {"any_": [plan]}}})
    return dict(found[0]) if found else None
