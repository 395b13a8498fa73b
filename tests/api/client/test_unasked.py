"""The client where no server answers: how long it waits, and what it does not even ask."""

from __future__ import annotations

import pytest

from api.client import Client, NotThereError, UnreachableError
from tests.ports import free_port


def test_a_stream_that_finds_nobody_asks_ever_more_seldom() -> None:
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 7:
            raise KeyboardInterrupt

    client = Client(f"http://127.0.0.1:{free_port()}", "blst_", attempts=1, sleep=pause)
    with pytest.raises(KeyboardInterrupt):
        next(client.events())
    assert pauses == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 10.0]


@pytest.mark.parametrize("name", ["pumps/versions", "../../v1/models", "/"])
def test_a_name_with_a_slash_is_no_address(name: str) -> None:
    """A server takes ``%2F`` for a slash: the plan "pumps/versions" would be the versions of another."""
    client = Client(f"http://127.0.0.1:{free_port()}", "blst_", attempts=1)
    for ask in (client.plan, client.run, client.model, client.cancel):
        with pytest.raises(NotThereError, match="a name has no slash"):
            ask(name)
    with pytest.raises(UnreachableError):
        client.plan("pumps")
