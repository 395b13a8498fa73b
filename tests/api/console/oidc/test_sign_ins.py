"""A sign-in under way: it ends once, by the clock, with its key, and at whichever process has the key."""

from __future__ import annotations

import base64
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from nacl.secret import SecretBox

from api.backend.wiring import open_backend
from api.console.sign_ins import COOKIE, SECONDS, SignIns, sign_in_key
from services.identity.errors import UnauthenticatedError
from services.identity.service_keys import PSEUDONYMS
from tests.api.console.conftest import STRANGE

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


@pytest.mark.parametrize("content", [
    b'{"to": "/console", "until": 2e9, "state": "s", "nonce": "n"}', b'{"to": "/console", "until": 2e9, "of": "0.2"}',
    b"[]", b"no JSON",
])
def test_a_cookie_with_other_content_is_no_sign_in(content: bytes) -> None:
    """Our own key sealed it: a version before or after this one says other things of a sign-in."""
    sealed = base64.urlsafe_b64encode(SecretBox(KEY).encrypt(content)).decode()
    with pytest.raises(UnauthenticatedError, match="not begun in this browser"):
        SignIns(lambda: KEY).end(f"{COOKIE}={sealed}", "another state")


@pytest.mark.parametrize("value", ["", "abc", "aGk=", "ü", base64.urlsafe_b64encode(bytes(64)).decode()])
def test_a_cookie_that_is_not_sealed_is_no_sign_in(value: str) -> None:
    with pytest.raises(UnauthenticatedError, match="not begun in this browser"):
        SignIns(lambda: KEY).end(f"{COOKIE}={value}", "s")


@pytest.mark.parametrize("other", STRANGE)
def test_a_strange_cookie_of_another_program_hides_no_sign_in(other: str) -> None:
    held = SignIns(lambda: KEY)
    made, header = held.begin("/console")
    assert held.end(f"{other}; {header.partition(';')[0]}", made.state) == made


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
