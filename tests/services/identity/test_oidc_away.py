"""An issuer that hangs, trickles, or gives keys that no token can be told by: who waits, and what the log says."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from services.contracts.access.identity import Role
from services.contracts.errors import UnavailableError
from services.identity.errors import UnauthenticatedError
from services.identity.oidc_issuer import LONGEST_SECONDS
from services.identity.oidc_keys import (
    GRACE_SECONDS,
    KEPT_RETRY_SECONDS,
    KEYS_SECONDS,
    RETRY_SECONDS,
    KeyCache,
    PublicKey,
)
from tests.oidc_issuer import LocalIssuer, an_rsa_key
from tests.services.identity.conftest import Clock, verifier
from tests.waiting import wait_until

HANGS = 20.0
"""Seconds after which a question that nobody lets go fails, so that who waits for it wrongly does, too."""


class Hanging:
    """An issuer that answers, or hangs until it is let go and then has not answered; by a clock of the test's."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.hangs, self.asked = clock, False, 0
        self.let_go = threading.Event()

    def __call__(self) -> list[PublicKey]:
        self.asked += 1
        if self.hangs:
            assert self.let_go.wait(HANGS)
            self.clock.now += LONGEST_SECONDS
            raise UnavailableError("the issuer cannot be asked: ReadTimeout")
        return [an_rsa_key(0)]


def test_who_has_a_known_key_waits_for_no_issuer_that_hangs() -> None:
    clock = Clock()
    issuer = Hanging(clock)
    keys = KeyCache(issuer, clock=clock)
    known = keys.find(None, "RS256")
    issuer.hangs, clock.now = True, clock.now + KEYS_SECONDS
    with ThreadPoolExecutor(1) as first:
        asks = first.submit(keys.find, None, "RS256")
        wait_until(lambda: issuer.asked == 2, "question to the issuer")
        assert [keys.find(None, "RS256") for _ in range(50)] == [known] * 50  # while it hangs
        assert not asks.done()
        issuer.let_go.set()
        assert asks.result() == known
    for later in (RETRY_SECONDS, KEPT_RETRY_SECONDS - RETRY_SECONDS - 1):  # whoever asks may wait; so nobody does
        clock.now += later
        assert keys.find(None, "RS256") == known
    assert issuer.asked == 2
    clock.now += 1
    assert keys.find(None, "RS256") == known and issuer.asked == 3
    clock.now += GRACE_SECONDS - KEYS_SECONDS
    with pytest.raises(UnavailableError, match="ReadTimeout"):
        keys.find(None, "RS256")


def test_an_issuer_that_has_not_answered_is_waited_for_by_one_at_a_time() -> None:
    clock = Clock()
    issuer = Hanging(clock)
    issuer.hangs = True
    issuer.let_go.set()
    keys = KeyCache(issuer, clock=clock)
    for _ in range(5):
        with pytest.raises(UnavailableError, match="ReadTimeout"):
            keys.find("any", "RS256")
    assert issuer.asked == 1  # the pause begins when its time was up
    issuer.let_go.clear()
    clock.now += RETRY_SECONDS
    with ThreadPoolExecutor(1) as first:
        asks = first.submit(keys.find, "any", "RS256")
        wait_until(lambda: issuer.asked == 2, "question to the issuer")
        for _ in range(50):
            with pytest.raises(UnavailableError, match="ReadTimeout"):
                keys.find("any", "RS256")
        issuer.let_go.set()
        with pytest.raises(UnavailableError):
            asks.result()


def test_an_answer_that_trickles_in_has_its_time(issuer: LocalIssuer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.identity.oidc_issuer.LONGEST_SECONDS", -1.0)
    with pytest.raises(UnavailableError, match="its answer takes too long"):
        verifier(issuer).bearer(issuer.token())


@pytest.mark.parametrize(("padding", "taken"), [(300_000, True), (600_000, False)])
def test_an_answer_in_many_parts_is_read_whole_up_to_what_keys_can_take(
    issuer: LocalIssuer, padding: int, taken: bool
) -> None:
    """No part that comes over the network is so long by itself."""
    issuer.documents["/keys"] = {"padding": "0" * padding}
    if taken:
        assert verifier(issuer).bearer(issuer.token()).role is Role.OPERATOR
    else:
        with pytest.raises(UnavailableError, match="its answer is too long"):
            verifier(issuer).bearer(issuer.token())


@pytest.mark.parametrize(("bend", "header", "said"), [
    (lambda issuer: None, {"kid": "another"}, "0 of the issuer's keys fit it, with its key id"),
    (lambda issuer: issuer.keys.update(second=an_rsa_key(0)), {"kid": None}, "2 of the issuer's keys fit it, which"),
    (lambda issuer: issuer.documents.update({"/keys": {"keys": [
        key.as_dict(private=False) | {"kid": "one"} for key in (an_rsa_key(0), an_rsa_key(1))
    ]}}), {"kid": "one"}, "2 of the issuer's keys fit it, with its key id"),
])
def test_the_log_says_why_no_key_was_taken(
    issuer: LocalIssuer, caplog: pytest.LogCaptureFixture, bend: Callable[[LocalIssuer], None],
    header: dict[str, Any], said: str,
) -> None:
    bend(issuer)
    checks = verifier(issuer)
    with caplog.at_level(logging.INFO, "ballast.identity"), pytest.raises(UnauthenticatedError):
        checks.bearer(issuer.token(header))
    (line,) = [record.getMessage() for record in caplog.records]
    assert said in line and "another" not in line.removeprefix("a token of the issuer")
    if not issuer.documents and len(issuer.keys) == 1:
        assert checks.bearer(issuer.token()).role is Role.OPERATOR
