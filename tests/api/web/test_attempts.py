"""Failed tokens are counted by address, for a minute, in little memory."""

from __future__ import annotations

import pytest

from api.web import attempts as attempts_module
from api.web.attempts import MOST_ADDRESSES, MOST_HELD, FailedAttempts, TooManyAttemptsError


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def refused(attempts: FailedAttempts, client: str, header: str | None = None) -> bool:
    try:
        attempts.check(client, header)
    except TooManyAttemptsError:
        return True
    return False


def fail(attempts: FailedAttempts, client: str, times: int) -> None:
    for _ in range(times):
        attempts.failed(client)


def test_the_tenth_failure_within_a_minute_shuts_an_address_out_for_a_minute() -> None:
    clock = Clock()
    attempts = FailedAttempts(clock=clock)
    fail(attempts, "192.0.2.1", 9)
    assert not refused(attempts, "192.0.2.1")
    clock.now += 59
    fail(attempts, "192.0.2.1", 1)
    assert refused(attempts, "192.0.2.1")
    assert not refused(attempts, "192.0.2.2")
    clock.now += 1
    assert not refused(attempts, "192.0.2.1")


def test_a_token_that_held_is_not_kept_waiting() -> None:
    attempts = FailedAttempts()
    attempts.held("good")
    fail(attempts, "192.0.2.1", 10)
    assert not refused(attempts, "192.0.2.1", "Bearer good")
    assert refused(attempts, "192.0.2.1", "Bearer goo")
    assert refused(attempts, "192.0.2.1", "Bearer")
    assert refused(attempts, "192.0.2.1", "Bearer \ud800")


@pytest.mark.parametrize(("other", "same"), [("2001:db8::ffff", True), ("2001:db8:0:1::1", False)])
def test_a_network_of_ipv6_is_one_address(other: str, same: bool) -> None:
    attempts = FailedAttempts()
    fail(attempts, "2001:db8::1", 10)
    assert refused(attempts, other) is same


def test_addresses_of_ipv4_written_as_ipv6_are_not_one_network() -> None:
    attempts = FailedAttempts()
    fail(attempts, "::ffff:192.0.2.1", 10)
    assert refused(attempts, "::ffff:192.0.2.1") and refused(attempts, "192.0.2.1")
    assert not refused(attempts, "::ffff:192.0.2.2") and not refused(attempts, "::1")


def test_of_many_the_longest_unseen_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts_module, "MOST_ADDRESSES", 3)
    monkeypatch.setattr(attempts_module, "MOST_HELD", 2)
    attempts = FailedAttempts()
    for number in range(1, 4):
        fail(attempts, f"192.0.2.{number}", 10)
    for client in ("192.0.2.1", "192.0.2.4"):  # the first is at it again when the fourth comes
        fail(attempts, client, 10)
    assert [refused(attempts, f"192.0.2.{number}") for number in range(1, 5)] == [True, False, True, True]
    for token in ("one", "two", "one", "three"):
        attempts.held(token)
    waits = [refused(attempts, "192.0.2.1", f"Bearer {token}") for token in ("one", "two", "three")]
    assert waits == [False, True, False]


def test_memory_is_bounded() -> None:
    attempts = FailedAttempts()
    for number in range(MOST_ADDRESSES + 10):
        attempts.failed(f"host-{number}")
    for number in range(MOST_HELD + 10):
        attempts.held(f"token-{number}")
    assert len(attempts._failures) == MOST_ADDRESSES
    assert len(attempts._held) == MOST_HELD
