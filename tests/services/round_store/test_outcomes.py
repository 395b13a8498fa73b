"""Outcomes of requests with an idempotency key: each is of the token that asked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import update

from services.round_store.operation_tables import OutcomeRow
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


def test_an_outcome_is_kept_for_a_day(store: RoundStore) -> None:
    for hours, kept in ((23, True), (25, False)):
        assert store.outcomes.begin("one", f"key {hours}", "asked") is None
        with store.database.write() as session:
            moment = datetime.now(UTC) - timedelta(hours=hours)
            session.execute(update(OutcomeRow).where(OutcomeRow.key_sha256 == f"key {hours}").values(created_at=moment))
        found = store.outcomes.begin("one", f"key {hours}", "asked again")
        assert found == (Outcome("asked", None) if kept else None)
