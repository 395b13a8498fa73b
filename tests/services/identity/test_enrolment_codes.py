"""Enrolment codes: what holds, what does not, and what an answer gives away."""

from __future__ import annotations

import hmac
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from services.contracts.access.enrolment import EnrolmentRequest, proof, read_code
from services.contracts.errors import InvalidInputError
from services.identity.enrolment_codes import check_code, issue_code
from services.identity.errors import ForbiddenError

NOW = datetime(2031, 5, 6, 7, 8, tzinfo=UTC)
DAY = timedelta(days=1)


def issued(**changes: Any) -> Any:
    stated = {"created_by": "ada", "certificate": "ab" * 32} | changes
    return issue_code("plant-7", "pump", NOW, DAY, **stated)


def request(text: str, **changes: Any) -> EnrolmentRequest:
    code = read_code(text)
    fields = {
        "site_id": code.site_id, "code_id": code.code_id, "secret": code.secret, "public_key": "UA",
        "signature": "0" * 128,
    }
    return EnrolmentRequest(**fields | changes)


def code_of(asked: EnrolmentRequest, stored: Any, now: datetime = NOW) -> str:
    with pytest.raises(ForbiddenError) as refused:
        check_code(asked, stored, now)
    assert asked.secret not in str(refused.value)
    return refused.value.code


def test_a_code_is_over_at_its_end_for_who_lists_it_as_for_who_shows_it() -> None:
    made = issued()
    before, asked = NOW + DAY - timedelta(microseconds=1), request(made.text)
    assert made.stored.record.state_at(before) == "open" and check_code(asked, made.stored, before)
    assert made.stored.record.state_at(NOW + DAY) == "expired"
    assert code_of(asked, made.stored, NOW + DAY) == "code_expired"


def test_a_code_reads_back_and_its_secret_is_not_stored() -> None:
    made = issued()
    code = read_code(f" {made.text[:40]}\n{made.text[40:]} ")
    assert (code.text, code.site_id, code.certificate) == (made.text, "plant-7", "ab" * 32)
    assert code.secret not in made.stored.model_dump_json() and code.secret not in repr(made) + repr(code)
    assert read_code(issued(certificate=None).text).certificate is None
    assert read_code(issued().text).secret != code.secret


def test_a_request_that_is_logged_shows_no_secret() -> None:
    asked = request(issued().text)
    assert asked.secret not in repr(asked) + str(asked) and asked.code_id in repr(asked)


def test_a_signature_is_for_one_code_one_site_and_one_key() -> None:
    """Or one that was seen for another code, or of another site, would enrol here; plants of before sign this text."""
    signed = ("0123456789ab", "plant-7", "UA")
    assert proof(*signed) == b"ballast.enrolment/1\n0123456789ab\nplant-7\nUA"
    others = [("0123456789ac", *signed[1:]), (signed[0], "plant-8", signed[2]), (*signed[:2], "UB")]
    assert len({proof(*each) for each in [signed, *others]}) == 4


def test_who_shows_the_code_in_time_is_let_in() -> None:
    made = issued()
    assert check_code(request(made.text), made.stored, NOW + DAY - timedelta(seconds=1)) == made.stored.record


def test_unknown_wrong_and_of_another_site_are_answered_alike() -> None:
    made = issued()
    asked = request(made.text)
    cases = [
        (asked, None), (request(issued().text), made.stored), (request(made.text, site_id="plant-8"), made.stored),
    ]
    assert {code_of(*case) for case in cases} == {"code_unknown"}


def test_used_expired_and_revoked_codes_do_not_hold() -> None:
    made = issued()
    asked = request(made.text)

    def stored(**changes: Any) -> Any:
        return made.stored.model_copy(update={"record": made.stored.record.model_copy(update=changes)})

    assert code_of(asked, made.stored, NOW + DAY) == "code_expired"
    assert code_of(asked, stored(revoked_at=NOW)) == "code_revoked"
    for key in ("UB", "", None):
        assert code_of(asked, stored(used_at=NOW, used_key=key)) == "code_used"
    again = stored(used_at=NOW, used_key="UA")
    assert check_code(asked, again, NOW) == again.record, "its answer may have been lost"
    assert check_code(request(made.text, public_key=" UA\n"), again, NOW) == again.record
    assert code_of(asked, again, NOW + DAY) == "code_expired"


def test_secrets_are_compared_in_constant_time_also_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str]] = []

    def noted(one: str, other: str) -> bool:
        seen.append((one, other))
        return one == other

    monkeypatch.setattr("services.identity.enrolment_codes.hmac.compare_digest", noted)
    assert code_of(request(issued().text), None) == "code_unknown"
    assert len(seen) == 1 and hmac is not None


@pytest.mark.parametrize("lifetime", [timedelta(0), -DAY, timedelta(days=31)])
def test_a_lifetime_that_is_none_is_refused(lifetime: timedelta) -> None:
    with pytest.raises(InvalidInputError, match="30 days"):
        issue_code("plant-7", "pump", NOW, lifetime, created_by="ada", certificate=None)
    longest = issue_code("plant-7", "pump", NOW, timedelta(days=30), created_by="ada", certificate=None)
    assert longest.stored.record.expires_at == NOW + timedelta(days=30)


@pytest.mark.parametrize("change", [
    lambda text: text[:-1], lambda text: "x" + text, lambda text: text.replace("plant-7", "Plant 7"),
    lambda text: text.upper(), lambda text: "", lambda text: text + "_" + "0" * 64,
])
def test_a_text_that_is_no_code_is_not_repeated(change: Any) -> None:
    text = change(issued().text)
    with pytest.raises(InvalidInputError) as refused:
        read_code(text)
    assert "blse_<site>" in str(refused.value)
    assert not text or text not in str(refused.value)
