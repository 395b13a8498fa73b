"""Tokens: made, taken apart and checked."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta

import pytest

from services.contracts.access.identity import Role, StoredToken
from services.contracts.errors import InvalidInputError
from services.identity.errors import UnauthenticatedError
from services.identity.tokens import IssuedToken, check, issue, token_id_of

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def issued() -> IssuedToken:
    """A token that holds for an hour."""
    return issue(" ci ", Role.OPERATOR, NOW, timedelta(hours=1))


def with_changes(issued: IssuedToken, **changes: object) -> StoredToken:
    return issued.stored.model_copy(update={"token": issued.stored.token.model_copy(update=changes)})


def test_a_token_is_checked_against_its_hash(issued: IssuedToken) -> None:
    prefix, token_id, secret = issued.text.split("_")
    assert prefix == "blst"
    assert len(bytes.fromhex(secret)) == 32
    assert token_id_of(issued.text) == token_id == issued.stored.token.token_id
    assert issued.stored.token.name == "ci"
    assert issued.stored.secret_sha256 == hashlib.sha256(secret.encode()).hexdigest()
    assert check(issued.text, issued.stored, NOW) == issued.stored.token


def test_the_secret_is_shown_nowhere(issued: IssuedToken) -> None:
    secret = issued.text.split("_")[2]
    assert secret not in repr(issued)
    assert secret not in issued.stored.model_dump_json()


def test_no_two_tokens_are_alike() -> None:
    made = [issue("ci", Role.VIEWER, NOW) for _ in range(100)]
    assert len({each.text for each in made}) == len({each.stored.token.token_id for each in made}) == 100


@pytest.mark.parametrize(
    "text",
    ["", "blst", "blst__", "blst_0123456789ab_", "Bearer x", "blst_0123456789ab_" + "g" * 64, "blst_é_" + "0" * 64],
)
def test_what_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(UnauthenticatedError, match="this is not a token"):
        token_id_of(text)
    with pytest.raises(UnauthenticatedError, match="this is not a token"):
        check(text, None, NOW)


def test_trailing_characters_make_no_token(issued: IssuedToken) -> None:
    for text in (f"{issued.text}\n", f" {issued.text}", f"{issued.text}0", issued.text.upper()):
        with pytest.raises(UnauthenticatedError, match="this is not a token"):
            check(text, issued.stored, NOW)


@pytest.mark.parametrize("place", [0, 31, 63])
def test_a_wrong_secret_is_answered_like_an_unknown_token(issued: IssuedToken, place: int) -> None:
    start = len("blst_") + 12 + 1 + place
    other = "0" if issued.text[start] != "0" else "1"
    wrong = issued.text[:start] + other + issued.text[start + 1 :]
    failures = []
    for text, stored in ((wrong, issued.stored), (issued.text, None), (wrong, with_changes(issued, revoked_at=NOW))):
        with pytest.raises(UnauthenticatedError) as failure:
            check(text, stored, NOW)
        failures.append((str(failure.value), failure.value.code))
    assert set(failures) == {("this token is not known", "unauthenticated")}


def test_a_secret_opens_its_own_token_only(issued: IssuedToken) -> None:
    with pytest.raises(UnauthenticatedError, match="not known"):
        check(issued.text, with_changes(issued, token_id="f" * 12), NOW)


def test_revoked_and_expired_tokens(issued: IssuedToken) -> None:
    with pytest.raises(UnauthenticatedError, match="was revoked"):
        check(issued.text, with_changes(issued, revoked_at=NOW), NOW)
    assert check(issued.text, issued.stored, NOW + timedelta(minutes=59))
    with pytest.raises(UnauthenticatedError, match="has expired"):
        check(issued.text, issued.stored, NOW + timedelta(hours=1))
    endless = issue("ci", Role.VIEWER, NOW)
    assert check(endless.text, endless.stored, NOW + timedelta(days=36_500))


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 81])
def test_names_that_would_blur_the_audit_trail(name: str) -> None:
    with pytest.raises(InvalidInputError, match="name"):
        issue(name, Role.VIEWER, NOW)


def test_a_lifetime_is_positive() -> None:
    with pytest.raises(InvalidInputError, match="give an end that lies in the future"):
        issue("ci", Role.VIEWER, NOW, timedelta(0))


def test_a_scope_beyond_the_role_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="the role viewer does not have the scope operate"):
        issue("gateway", Role.VIEWER, NOW, scopes=("diagnose", "operate"))
    with pytest.raises(InvalidInputError, match="scopes"):  # or narrowed to nothing would be not narrowed at all
        issue("gateway", Role.VIEWER, NOW, scopes=())
    assert issue("gateway", Role.VIEWER, NOW, scopes=("diagnose",)).stored.token.scopes == ("diagnose",)
