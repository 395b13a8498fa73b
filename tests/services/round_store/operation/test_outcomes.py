"""Outcomes of requests with an idempotency key: each is of the token that asked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import update

from services.round_store.operation.outcomes import Outcome
from services.round_store.store import RoundStore
from services.round_store.tables.operation import OutcomeRow


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


def test_an_outcome_is_forgotten_after_a_day_and_not_before(store: RoundStore) -> None:
    outcomes = store.outcomes
    for hours, kept in ((23, Outcome("asked", b"sealed")), (25, None)):
        outcomes.forget("one", "key")
        assert outcomes.begin("one", "key", "asked") is None
        outcomes.finish("one", "key", b"sealed")
        with store.engine.begin() as connection:
            connection.execute(update(OutcomeRow).values(created_at=datetime.now(UTC) - timedelta(hours=hours)))
        assert outcomes.begin("one", "key", "asked") == kept
