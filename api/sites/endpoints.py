"""Administration of sites."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Path, Request, Response

from api.sites import enrolment, service
from api.sites.schemas import CodeRequest, EnrolmentCodes, KeyChange, NewCode, SiteEnrolment, Sites
from api.web.attempts import FailedAttempts
from api.web.auth import Administrator, Engineer
from api.web.dependencies import BackendDep, PlainJSON, ReasonDep
from api.web.paging import Cursor, WholeList, page_of
from services.contracts.access.enrolment import PATH, EnrolmentPackage, EnrolmentRequest
from services.contracts.access.enrolment_records import CodeState, EnrolmentRecord
from services.contracts.base import Slug
from services.contracts.history.site import Site, SiteStatus
from services.identity.errors import ForbiddenError
from services.round_store.database.queries import MAX_PAGE

router = APIRouter(prefix="/v1/admin/sites", tags=["administration: sites"], default_response_class=PlainJSON)
codes = APIRouter(
    prefix="/v1/admin/enrolment-codes", tags=["administration: sites"], default_response_class=PlainJSON
)
plants = APIRouter(tags=["enrolment"], default_response_class=PlainJSON)
ROUTERS = (router, codes, plants)


@router.get("")
def list_sites(
    _: Engineer,
    backend: BackendDep,
    request: Request,
    response: Response,
    status: SiteStatus | None = None,
    asset_type: str | None = None,
    limit: WholeList = MAX_PAGE,
    cursor: Cursor = None,
) -> Sites:
    """Sites, also suspended and removed ones; of one status or asset type where asked."""
    found = backend.store.sites.list_sites(status=status, asset_type=asset_type)
    return Sites(sites=page_of(found, lambda each: (each.site_id,), (str,), request, response, limit, cursor))


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


@router.get("/{site_id}/enrolment-codes")
def list_enrolment_codes(
    site_id: str, _: Administrator, backend: BackendDep, request: Request, response: Response,
    state: CodeState | None = None, limit: WholeList = MAX_PAGE, cursor: Cursor = None,
) -> EnrolmentCodes:
    """Codes of a site without their secrets, newest first; of one state where asked."""
    found = backend.store.enrolment_codes.list_codes(site_id, state=state)
    return EnrolmentCodes(codes=page_of(found, _newest_first, (float, str), request, response, limit, cursor))


@codes.get("")
def list_all_enrolment_codes(
    _: Administrator, backend: BackendDep, request: Request, response: Response, site: str | None = None,
    state: CodeState | None = None, limit: WholeList = MAX_PAGE, cursor: Cursor = None,
) -> EnrolmentCodes:
    """Codes of all sites without their secrets, newest first; of one site or state where asked."""
    found = backend.store.enrolment_codes.list_codes(site, state=state)
    return EnrolmentCodes(codes=page_of(found, _newest_first, (float, str), request, response, limit, cursor))


def _newest_first(code: EnrolmentRecord) -> tuple[float, str]:
    return -code.created_at.timestamp(), code.code_id


@router.post("/{site_id}/enrolment-codes", status_code=201)
def create_enrolment_code(
    site_id: Annotated[Slug, Path(description="the site, which need not be there yet")],
    caller: Administrator,
    backend: BackendDep,
    body: Annotated[CodeRequest | None, Body()] = None,
) -> NewCode:
    """Make a code by which one plant may enrol itself once; earlier ones of the site that were not used are revoked.

    It carries the fingerprint of this server's certificate, so the plant needs nothing else to know whom it speaks to.
    """
    return enrolment.create_code(backend, caller.actor, site_id, body or CodeRequest())


@router.delete("/{site_id}/enrolment-codes/{code_id}")
def revoke_enrolment_code(
    site_id: str, code_id: str, caller: Administrator, backend: BackendDep, reason: ReasonDep
) -> EnrolmentRecord:
    """Revoke a code that was not used."""
    return enrolment.revoke_code(backend, caller.actor, site_id, code_id, reason)


@plants.post(PATH)
def redeem_enrolment_code(body: EnrolmentRequest, request: Request, backend: BackendDep) -> EnrolmentPackage:
    """Enrol the plant that shows a code that holds, with its public key. Needs no token: `ballast-site enrol` calls it.

    The answer has the asset type, the address and authority of the plant link, and the OEM's public key. 403 for a code
    that is unknown, used, revoked or expired; 429 after ten of them in a minute.
    """
    attempts: FailedAttempts = request.app.state.enrolment_attempts
    client = request.client.host if request.client else ""
    attempts.check(client, None)
    try:
        return enrolment.redeem(backend, body)
    except ForbiddenError:
        attempts.failed(client)
        raise
