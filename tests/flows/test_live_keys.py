"""A key that is changed or taken away counts at once, also in the middle of a run."""

from __future__ import annotations

import pytest

from flows.live_keys import LiveKeys


def test_keys_are_those_of_now_and_sites_those_of_the_beginning() -> None:
    store, clock = {"north": "U1", "south": "U2"}, [0.0]
    keys = LiveKeys(store.copy(), lambda: dict(store), clock=lambda: clock[0])
    assert dict(keys) == {"north": "U1", "south": "U2"}
    store["north"] = "U3 U1"
    del store["south"]
    store["west"] = "U4"
    clock[0] = 0.49
    assert keys["north"] == "U1"
    clock[0] = 0.5
    assert dict(keys) == {"north": "U3 U1", "south": ""}
    assert len(keys) == 2
    with pytest.raises(KeyError):
        _ = keys["west"]
