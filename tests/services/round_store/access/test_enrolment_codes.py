"""Stored enrolment codes: each is used once, in time, and by its own site; a site has one that holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from services.contracts.errors import ConflictError, NotFoundError
from services.identity.enrolment_codes import issue_code
from services.round_store.store import RoundStore

DAY = timedelta(days=1)


def added(store: RoundStore, site: str = "a", *, ago: timedelta = timedelta(0), **more: Any) -> str:
    """Code of a day for a site, made some time ago; its id."""
    made = issue_code(site, "pump", datetime.now(UTC) - ago, DAY, created_by="ada", certificate=None, **more)
    return store.enrolment_codes.add(made.stored).code_id


def opened(store: RoundStore) -> set[str]:
    return {each.code_id for each in store.enrolment_codes.list_open()}


def test_a_code_is_used_once_and_by_one_key(store: RoundStore) -> None:
    code = added(store)
    assert opened(store) == {code}
    assert store.enrolment_codes.use(code, "UA") and not store.enrolment_codes.use(code, "UB")
    found = store.enrolment_codes.find(code)
    assert found is not None and found.record.used_key == "UA" and found.record.used_at is not None
    assert opened(store) == set() and not store.enrolment_codes.use("0" * 12, "UA")
    with pytest.raises(ConflictError, match="was used"):
        store.enrolment_codes.revoke("a", code)


def test_a_code_that_has_expired_is_used_no_more(store: RoundStore) -> None:
    late, other = added(store, ago=DAY + timedelta(minutes=1)), added(store, "b", ago=DAY - timedelta(minutes=1))
    assert opened(store) == {other}
    assert not store.enrolment_codes.use(late, "UA") and store.enrolment_codes.use(other, "UB")


def test_a_code_that_was_revoked_is_used_no_more(store: RoundStore) -> None:
    code, other = added(store), added(store, "b")
    with pytest.raises(NotFoundError, match="of site b"):
        store.enrolment_codes.revoke("b", code)
    revoked = store.enrolment_codes.revoke("a", code)
    assert revoked.revoked_at is not None
    assert store.enrolment_codes.revoke("a", code) == revoked, "the first time stands"
    assert not store.enrolment_codes.use(code, "UA") and opened(store) == {other}
    with pytest.raises(NotFoundError):
        store.enrolment_codes.revoke("a", "0" * 12)


def test_a_site_has_one_code_that_holds_and_those_that_were_used_stay_used(store: RoundStore) -> None:
    used, other = added(store, ago=3 * timedelta(hours=1)), added(store, "b")
    assert store.enrolment_codes.use(used, "UA")
    first = added(store, ago=2 * timedelta(hours=1))
    second = added(store, ago=timedelta(hours=1))
    assert opened(store) == {second, other}
    assert [each.code_id for each in store.enrolment_codes.list_codes("a")] == [second, first, used]
    assert [each.revoked_at is not None for each in store.enrolment_codes.list_codes("a")] == [False, True, False]
    assert store.enrolment_codes.revoke_unused("a") == 1 and store.enrolment_codes.revoke_unused("a") == 0
    assert opened(store) == {other}
