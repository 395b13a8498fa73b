"""Administration of sites."""

from __future__ import annotations

from fastapi import APIRouter

from api.sites import service
from api.sites.schemas import KeyChange, SiteEnrolment, Sites
from api.web.auth import Administrator, Operator
from api.web.dependencies import BackendDep, PlainJSON, ReasonDep
from services.contracts.records import Site, SiteStatus

router = APIRouter(prefix="/v1/admin/sites", tags=["administration: sites"], default_response_class=PlainJSON)
ROUTERS = (router,)


@router.get("")
def list_sites(
    _: Operator, backend: BackendDep, status: SiteStatus | None = None, asset_type: str | None = None
) -> Sites:
    """Sites, also suspended and removed ones; of one status or asset type where asked."""
    return Sites(sites=tuple(backend.store.sites.list_sites(status=status, asset_type=asset_type)))


@router.post("", status_code=201)
def enrol_site(body: SiteEnrolment, caller: Administrator, backend: BackendDep) -> Site:
    """Enrol a plant with its public key; a running embedded NATS server lets it in at once."""
    return service.enrol(backend, caller.actor, body)


@router.post("/{site_id}/key")
def rotate_site_key(site_id: str, body: KeyChange, caller: Administrator, backend: BackendDep) -> Site:
    """Give a plant another key; the one before holds beside it for the overlap."""
    return service.rotate_key(backend, caller.actor, site_id, body)


@router.post("/{site_id}/suspend")
def suspend_site(site_id: str, caller: Administrator, backend: BackendDep, reason: ReasonDep) -> Site:
    """Ask a site no more and cut its connection."""
    return service.suspend(backend, caller.actor, site_id, reason)


@router.post("/{site_id}/activate")
def activate_site(site_id: str, caller: Administrator, backend: BackendDep, reason: ReasonDep) -> Site:
    """Ask a suspended site again."""
    return service.activate(backend, caller.actor, site_id, reason)


@router.delete("/{site_id}")
def remove_site(site_id: str, caller: Administrator, backend: BackendDep, reason: ReasonDep) -> Site:
    """End a site's enrolment; its part in earlier runs stays on record."""
    return service.remove(backend, caller.actor, site_id, reason)
