"""A small client of our own REST API, for the command line."""

from __future__ import annotations

from typing import Any, Self

import httpx

from services.contracts.errors import BallastError, UnavailableError


class RestClient:
    """Calls the API with a bearer token; a problem that the API reports becomes one line."""

    def __init__(self, base_url: str, token: str, timeout_seconds: float = 30.0) -> None:
        self._client = httpx.Client(
            base_url=base_url, headers={"Authorization": f"Bearer {token}"}, timeout=timeout_seconds
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request and return its JSON; raise ``UnavailableError``, or ``BallastError`` with the API's reason."""
        try:
            answer = self._client.request(method, path, json=body)
        except httpx.HTTPError as error:
            why = str(error) or type(error).__name__
            raise UnavailableError(f"the API did not answer {method} {path}: {why}") from None
        if answer.is_error:
            problem = answer.json() if "json" in answer.headers.get("content-type", "") else {}
            raise BallastError(
                f"{method} {path}: {problem.get('detail') or answer.reason_phrase}", code=problem.get("code", "error")
            )
        return answer.json() if answer.content else None
