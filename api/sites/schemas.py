"""What the endpoints of sites take and give."""

from __future__ import annotations

from pydantic import Field

from services.contracts.base import Contract, Slug
from services.contracts.records import Site


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
