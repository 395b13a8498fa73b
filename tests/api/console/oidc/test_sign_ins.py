"""A sign-in under way: it ends once, by the clock, with its key, and at whichever process has the key."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from api.backend.wiring import open_backend
from api.console.sign_ins import SECONDS, SignIns, sign_in_key
from services.identity.errors import UnauthenticatedError
from services.identity.service_keys import PSEUDONYMS

KEY = bytes(32)


def test_a_sign_in_ends_once() -> None:
    """Whatever code comes with it: a second time the issuer is not even asked."""
    held = SignIns(lambda: KEY)
    made, header = held.begin("/console")
    cookie = header.partition(";")[0]
    assert held.end(cookie, made.state) == made
    with pytest.raises(UnauthenticatedError):
        held.end(cookie, made.state)


def test_of_ended_sign_ins_no_more_are_remembered_than_may_come_back(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those whose cookie has ended anyway go, and of more than so many the first ones."""
    monkeypatch.setattr("api.console.sign_ins.MOST_USED", 3)
    now = [1000.0]
    held = SignIns(lambda: KEY, clock=lambda: now[0])
    for number in range(5):
        made, header = held.begin("/console")
        held.end(header.partition(";")[0], made.state)
        assert len(held._used) == min(number + 1, 3)
    now[0] += SECONDS
    made, header = held.begin("/console")
    held.end(header.partition(";")[0], made.state)
    assert list(held._used) == [made.state]


def test_a_cookie_ends_by_the_clock_and_with_its_key() -> None:
    now, keys = [1000.0], [KEY]
    held = SignIns(lambda: keys[0], clock=lambda: now[0])
    made, header = held.begin("/console")
    cookie = header.partition(";")[0]
    assert SignIns(lambda: KEY, clock=lambda: now[0]).end(cookie, made.state) == made
    now[0] += SECONDS
    with pytest.raises(UnauthenticatedError):
        held.end(cookie, made.state)
    now[0] -= 1
    keys[0] = bytes.fromhex("cd" * 32)
    with pytest.raises(UnauthenticatedError):
        held.end(cookie, made.state)


def test_a_sign_in_that_one_process_began_ends_at_another(world: Any, tmp_path: Path) -> None:
    """Behind a balancer the issuer sends the browser back to either; their home folders have one key."""
    one = SignIns(partial(sign_in_key, world.backend))
    made, header = one.begin("/console")
    settings = world.settings.model_copy(update={"home": tmp_path / "there"})
    settings.home.mkdir()
    shutil.copy(world.settings.home / PSEUDONYMS, settings.home)
    with open_backend(settings) as there:
        other = SignIns(partial(sign_in_key, there))
        assert other.end(header.partition(";")[0], made.state) == made
    assert sign_in_key(world.backend) != world.backend.service_keys.get(PSEUDONYMS), "a key for one purpose"
