"""Which keys of the OEM's line may vouch for which versions, told offline from statements of its changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from services.contracts.errors import InvalidInputError
from services.contracts.keys.key_chain import (
    KeyStatement,
    SignatureError,
    read_statements,
    state_change,
    up_to,
    write_statements,
)
from services.contracts.keys.signed_documents import check_signature, signature_of, signed_digest
from services.contracts.keys.signing import new_seed_file, public_key

START = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def seeds(tmp_path: Path) -> list[Path]:
    found = [tmp_path / f"{k}.nk" for k in range(4)]
    for seed in found:
        new_seed_file(seed)
    return found


def signed(seed: Path, made: datetime, risk: float = 0.25) -> dict[str, Any]:
    draft = {"name": "pumps", "created_at": made.isoformat(), "risk": risk, "signed_by": public_key(seed)}
    return {**draft, "signature": signature_of(draft, seed), "version": "3"}


def changed(former: Path, following: Path, day: int, standing: list[str] | None = None) -> KeyStatement:
    return state_change(former, following, START + day * DAY, START + (day + 1) * DAY, standing)


def test_versions_of_keys_before_and_after_the_trusted_one_hold(seeds: list[Path]) -> None:
    line = read_statements(write_statements([changed(seeds[k], seeds[k + 1], 10 * (k + 1)) for k in range(3)]))
    for k, seed in enumerate(seeds):
        document = signed(seed, START + timedelta(days=10 * k + 5))
        for anchor in seeds:
            assert check_signature(document, public_key(anchor), line) == public_key(seed)
            with pytest.raises(SignatureError, match="was changed after"):
                check_signature({**document, "risk": 0.2}, public_key(anchor), line)
        if k:
            with pytest.raises(SignatureError, match="not by the OEM's key"):
                check_signature(document, public_key(seeds[0]))


def test_a_former_key_vouches_for_nothing_after_its_end(seeds: list[Path]) -> None:
    line = (changed(seeds[0], seeds[1], 10),)
    within, after = signed(seeds[0], START + 10.9 * DAY), signed(seeds[0], START + 11.1 * DAY)
    for anchor in seeds[:2]:
        check_signature(within, public_key(anchor), line)
        with pytest.raises(SignatureError, match="made after the end of the key"):
            check_signature(after, public_key(anchor), line)


@pytest.mark.parametrize("made", ["", "last week", None, "2026-03-05T00:00:00"])
def test_a_former_key_vouches_for_nothing_that_does_not_say_when_it_was_made(seeds: list[Path], made: Any) -> None:
    """A time without a zone says it neither."""
    draft = {"name": "pumps", "created_at": made, "signed_by": public_key(seeds[0])}
    document = {**draft, "signature": signature_of(draft, seeds[0]), "version": "3"}
    with pytest.raises(SignatureError, match="does not say when it was made|made after the end of the key"):
        check_signature(document, public_key(seeds[1]), (changed(seeds[0], seeds[1], 10),))


def test_a_stolen_key_vouches_for_what_stood_and_for_nothing_else(seeds: list[Path]) -> None:
    """Whatever date the thief writes into a version, and whatever key the thief says came before."""
    kept, older = signed(seeds[1], START + 12 * DAY), signed(seeds[0], START + 5 * DAY)
    line = read_statements(write_statements([
        changed(seeds[0], seeds[1], 10), changed(seeds[1], seeds[2], 20, [signed_digest(kept), signed_digest(older)]),
    ]))
    holder = public_key(seeds[2])
    assert check_signature(kept, holder, line) == public_key(seeds[1])
    assert check_signature(older, holder, line) == public_key(seeds[0])
    for forged in (signed(seeds[1], START + 12 * DAY, 0.1), signed(seeds[0], START + 5 * DAY, 0.1)):
        with pytest.raises(SignatureError, match="not among those that stood"):
            check_signature(forged, holder, line)
    invented = (changed(seeds[3], seeds[1], 1), line[1])
    with pytest.raises(SignatureError, match="not among those that stood"):
        check_signature(signed(seeds[3], START), holder, invented)
    # Who trusts the stolen key, or one before it, cannot tell the thief's successor from the OEM's.
    for anchor in seeds[:2]:
        with pytest.raises(SignatureError, match="revoked as stolen on 2026-03-21"):
            check_signature(kept, public_key(anchor), line)


def test_a_line_that_nobody_signed_or_that_forks_is_refused(seeds: list[Path]) -> None:
    good = changed(seeds[0], seeds[1], 10)
    for change in ({"by_former": ""}, {"by_next": good.by_former}, {"former_until": START + 99 * DAY},
                   {"stolen": True}, {"standing": ("0",)}, {"next": public_key(seeds[2])}):
        with pytest.raises(SignatureError, match="is not signed by"):
            read_statements(write_statements([good.model_copy(update=change)]))
    for other in (changed(seeds[0], seeds[2], 11), changed(seeds[2], seeds[1], 11)):
        with pytest.raises(SignatureError, match="two keys claim"):
            read_statements(write_statements([good, other]))
    for text in ("{", "[{}]", "[1]", '[{"former": "U"}]'):
        with pytest.raises(InvalidInputError, match="key statements"):
            read_statements(text)
    circle = (good, changed(seeds[1], seeds[0], 20))
    check_signature(signed(seeds[0], START), public_key(seeds[1]), circle)


def test_the_line_up_to_a_key_leaves_out_the_change_from_it(seeds: list[Path]) -> None:
    line = tuple(changed(seeds[k], seeds[k + 1], 10 * (k + 1)) for k in range(3))
    assert up_to(public_key(seeds[2]), line) == line[:2] and up_to(public_key(seeds[3]), line) == line
    assert up_to(None, line) == line and up_to(public_key(seeds[0]), line[:1]) == ()
