"""Outcomes of requests with an idempotency key: each is of the token that asked."""

from __future__ import annotations

from services.round_store.outcomes import Outcome
from services.round_store.store import RoundStore


def test_two_tokens_may_use_one_key(store: RoundStore) -> None:
    outcomes = store.outcomes
    for token in ("one", "two"):
        assert outcomes.begin(token, "key", token) is None
    outcomes.finish("one", "key", b"sealed")
    assert outcomes.begin("one", "key", "one") == Outcome("one", b"sealed")
    assert outcomes.begin("two", "key", "two") == Outcome("two", None), "the other's has not ended"
    outcomes.forget("one", "key")
    assert outcomes.begin("two", "key", "two") == Outcome("two", None), "the other's is not forgotten"
    assert outcomes.begin("one", "key", "anew") is None
