"""Enrolment codes: made, and checked when a plant shows one.

As with API tokens the secret is 256 random bits, so its plain SHA-256 is stored (``tokens.py`` says why).
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from services.contracts.access.enrolment import EnrolmentCode, EnrolmentRequest
from services.contracts.access.enrolment_records import EnrolmentRecord, StoredCode
from services.contracts.errors import InvalidInputError
from services.identity.errors import ForbiddenError
from services.identity.tokens import ID_BYTES, SECRET_BYTES, hash_secret

LONGEST = timedelta(days=30)
_NOBODY = "0" * 64  # compared with where no code is, so that both take as long


@dataclass(frozen=True)
class IssuedCode:
    """A new code: ``text`` goes to the plant, once; ``stored`` goes to the store."""

    text: str = field(repr=False)
    stored: StoredCode


def issue_code(
    site_id: str, asset_type: str, now: datetime, lifetime: timedelta, *, created_by: str, certificate: str | None,
    description: str = "", replaces_key: bool = False,
) -> IssuedCode:
    """Make a code for one site.

    Parameters
    ----------
    certificate
        SHA-256 of the certificate that the plant must meet; None: the operating system's authorities vouch for it.
    replaces_key
        Whether the site is enrolled already, and the code gives it another key.

    Raises
    ------
    InvalidInputError
        For a lifetime that is not positive, or longer than 30 days.
    """
    if not timedelta(0) < lifetime <= LONGEST:
        raise InvalidInputError(f"an enrolment code holds for at most {LONGEST.days} days, and for longer than nothing")
    code_id, secret = secrets.token_hex(ID_BYTES), secrets.token_hex(SECRET_BYTES)
    record = EnrolmentRecord(
        code_id=code_id, site_id=site_id, asset_type=asset_type, description=description, replaces_key=replaces_key,
        created_by=created_by, created_at=now, expires_at=now + lifetime,
    )
    text = EnrolmentCode(site_id, code_id, secret, certificate).text
    return IssuedCode(text, StoredCode(record=record, secret_sha256=hash_secret(secret)))


def check_code(request: EnrolmentRequest, stored: StoredCode | None, now: datetime) -> EnrolmentRecord:
    """Code of a request, if its secret is the stored one, it is of this site, and it holds at ``now``.

    The comparison takes the same time wherever the secrets differ, and is made also when there is no such code. An
    unknown id, a wrong secret and another site are answered alike; only who has the secret learns more. The key that a
    code was used for may show it again until it expires: the answer may have been lost on its way.

    Raises
    ------
    ForbiddenError
        Otherwise: ``code_unknown``, ``code_revoked``, ``code_expired`` or ``code_used``.
    """
    expected = _NOBODY if stored is None else stored.secret_sha256
    matches = hmac.compare_digest(hash_secret(request.secret), expected)
    if stored is None or not matches or stored.record.site_id != request.site_id:
        raise ForbiddenError("this enrolment code is not known; ask the OEM for another", code="code_unknown")
    record = stored.record
    if record.used_at is not None and record.used_key != request.public_key.strip():
        raise ForbiddenError("this enrolment code was used already; ask the OEM for another", code="code_used")
    if record.revoked_at is not None:
        raise ForbiddenError("this enrolment code was revoked; ask the OEM for another", code="code_revoked")
    if now >= record.expires_at:
        raise ForbiddenError("this enrolment code has expired; ask the OEM for another", code="code_expired")
    return record
