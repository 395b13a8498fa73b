"""Administration of sites."""

from __future__ import annotations

from fastapi import APIRouter

from api.auth import Administrator, Operator
from api.dependencies import Office, PlainJSON, actor_of
from api.schemas import Because, SiteEnrolment, Sites
from api.use_cases import sites
from services.contracts.site import Site, SiteStatus

router = APIRouter(prefix="/v1/admin/sites", tags=["administration: sites"], default_response_class=PlainJSON)


@router.get("")
def list_sites(
    _: Operator, backend: Office, status: SiteStatus | None = None, asset_type: str | None = None
) -> Sites:
    """Sites, also suspended and removed ones; of one status or asset type where asked."""
    return Sites(sites=tuple(backend.store.sites.list_sites(status=status, asset_type=asset_type)))


@router.post("", status_code=201)
def enrol_site(body: SiteEnrolment, caller: Administrator, backend: Office) -> Site:
    """Enrol a plant with its public key; a running embedded NATS server lets it in at once."""
    return sites.enrol(backend, actor_of(caller), body)


@router.post("/{site_id}/suspend")
def suspend_site(site_id: str, caller: Administrator, backend: Office, body: Because | None = None) -> Site:
    """Ask a site no more and cut its connection."""
    return sites.suspend(backend, actor_of(caller), site_id, body.reason if body else "")


@router.post("/{site_id}/activate")
def activate_site(site_id: str, caller: Administrator, backend: Office, body: Because | None = None) -> Site:
    """Ask a suspended site again."""
    return sites.activate(backend, actor_of(caller), site_id, body.reason if body else "")


@router.delete("/{site_id}")
def remove_site(site_id: str, caller: Administrator, backend: Office, body: Because | None = None) -> Site:
    """End a site's enrolment; its part in earlier runs stays on record."""
    return sites.remove(backend, actor_of(caller), site_id, body.reason if body else "")
