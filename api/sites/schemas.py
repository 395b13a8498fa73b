"""What the endpoints of sites take and give."""

from __future__ import annotations

from typing import Final

from pydantic import AwareDatetime, Field

from services.contracts.access.enrolment_records import EnrolmentRecord
from services.contracts.access.identity import Sha256, TokenId
from services.contracts.base import Contract, Slug
from services.contracts.history.site import Site


class SiteEnrolment(Contract):
    """A plant to enrol, with the public key that its own ``ballast-site init`` made."""

    site_id: Slug = Field(examples=["plant-1"])
    public_key: str = Field(
        max_length=200, examples=["UDCS4GU65N7F6TT4SDHVOB6JIVEWF522RIWCUIYBMEIECC2RTZ45A4F6"],
        description="NATS user public key, U...",
    )
    asset_types: tuple[Slug, ...] = Field(default=(), examples=[["triplex-pump"]])
    description: str = Field(default="", max_length=500)


class KeyChange(Contract):
    """Another key of a plant. The one before holds beside it for the overlap; 0 ends it at once, as after a loss."""

    public_key: str = Field(max_length=200, description="NATS user public key, U...")
    overlap_hours: float = Field(default=24.0, ge=0, le=24 * 30)
    reason: str = Field(default="", max_length=500)


class Sites(Contract):
    """Sites by id."""

    sites: tuple[Site, ...]


CODE_DAYS: Final = 30
"""A code holds no longer: whoever finds it enrols in the plant's place."""


class SiteName(Contract):
    """Name of a site that may not be there yet."""

    site_id: Slug


class CodeRequest(Contract):
    """A code by which one plant may enrol once, with a key that it makes itself."""

    asset_type: Slug | None = Field(
        default=None, examples=["triplex-pump"], description="kind of machine; null: the only one that there is"
    )
    expires_hours: float = Field(default=24.0, gt=0, le=24 * CODE_DAYS, description="how long it holds")
    description: str = Field(default="", max_length=500)
    replace_key: bool = Field(
        default=False, description="the site is enrolled, and has lost its key: the code ends the former one at once"
    )
    certificate_sha256: Sha256 | None = Field(
        default=None,
        description="of the certificate (DER) that plants meet, where a proxy ends TLS; null: the API's own",
    )


class NewCode(Contract):
    """A code as it is shown this once, and the command to paste at the plant."""

    code: str = Field(repr=False, description="hand it to the plant by a way that you trust; it cannot be shown again")
    code_id: TokenId
    site_id: Slug
    asset_type: Slug
    expires_at: AwareDatetime
    command: str = Field(repr=False)


class EnrolmentCodes(Contract):
    """Codes of a site, newest first, without their secrets."""

    codes: tuple[EnrolmentRecord, ...]
