"""Enrolment by a code: an administrator makes one for a site, and the plant that shows it is enrolled with its key."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime, timedelta

from api.backend.actor import Actor, record
from api.backend.addresses import api_address, certificate_digest, link_addresses, websocket_addresses
from api.backend.oem_keys import check_not_oems
from api.backend.wiring import Backend
from api.sites.schemas import CodeRequest, NewCode
from services.contracts.access.enrolment import EnrolmentPackage, EnrolmentRequest, proof
from services.contracts.access.enrolment_records import EnrolmentRecord
from services.contracts.errors import ConflictError, InvalidInputError, NotFoundError, UnavailableError
from services.contracts.history.site import Site
from services.contracts.keys.signing import public_key, verify
from services.identity.enrolment import check_site_key
from services.identity.enrolment_codes import check_code, issue_code
from services.identity.errors import ForbiddenError
from services.round_store.store import Repositories


def create_code(backend: Backend, actor: Actor, site_id: str, wanted: CodeRequest) -> NewCode:
    """Make a code by which one plant may enrol once; its text is in the answer and nowhere else.

    ``ConflictError`` where the site is enrolled and its key is not to be replaced, or the other way round;
    ``InvalidInputError`` where no asset type is named and it does not follow, or a new key comes with a description.
    """
    if wanted.replace_key and wanted.description:
        raise InvalidInputError("another key leaves a site's description as it is: ask for it without a description")
    certificate = wanted.certificate_sha256 or certificate_digest(backend.settings)
    with backend.store.atomic() as store:
        site = _site(store, site_id)
        if site is not None and not wanted.replace_key:
            raise ConflictError(
                f"site {site_id} is enrolled already; to give it another key say so (--replace-key), or remove it first"
            )
        if site is None and wanted.replace_key:
            raise ConflictError(f"site {site_id} is not enrolled, so it has no key to replace")
        issued = issue_code(
            site_id, _asset_type(store, site, wanted.asset_type), datetime.now(UTC),
            timedelta(hours=wanted.expires_hours), created_by=actor.name, certificate=certificate,
            description=wanted.description, replaces_key=site is not None,
        )
        made = store.enrolment_codes.add(issued.stored)
        record(store, actor, "site.enrol_code", f"site:{site_id}", after=made)
    url = api_address(backend.settings)
    command = f"ballast-site enrol --url {shlex.quote(url)} --code {issued.text} --data measurements.csv"
    return NewCode(
        code=issued.text, code_id=made.code_id, site_id=site_id, asset_type=made.asset_type,
        expires_at=made.expires_at, command=command,
    )


def revoke_code(backend: Backend, actor: Actor, site_id: str, code_id: str, reason: str = "") -> EnrolmentRecord:
    """Revoke a code that was not used; ``ConflictError`` for one that was."""
    with backend.store.atomic() as store:
        before = store.enrolment_codes.find(code_id)
        after = store.enrolment_codes.revoke(site_id, code_id)
        if before is not None and after != before.record:
            record(
                store, actor, "site.revoke_code", f"site:{site_id}", before=before.record, after=after, reason=reason
            )
    return after


def redeem(backend: Backend, wanted: EnrolmentRequest) -> EnrolmentPackage:
    """Enrol the plant that shows a code that holds, with the key of which it has the private half.

    Raises
    ------
    ForbiddenError
        The code is unknown, of another site, used, revoked or expired. Nothing was changed; where the secret was
        right, an entry in the audit trail says so, for somebody has had the code twice.
    InvalidInputError
        The key is no public key, or the signature is not by it.
    ConflictError
        The key is the OEM's or belongs to another site, or the site was enrolled or removed by hand meanwhile.
    """
    key = check_site_key(wanted.public_key)
    stored = backend.store.enrolment_codes.find(wanted.code_id)
    try:
        code = check_code(wanted, stored, datetime.now(UTC))
    except ForbiddenError as error:
        if error.code != "code_unknown" and stored is not None:
            _note_refusal(backend, stored.record, error)
        raise
    if not verify(key, proof(code.code_id, code.site_id, key), bytes.fromhex(wanted.signature)):
        raise InvalidInputError("the signature is not by this public key; nothing was enrolled")
    check_not_oems(backend.settings, code.site_id, key)
    package = _package(backend, code, web_socket=wanted.web_socket)
    if code.used_at is None:
        try:
            _enrol(backend, code, key)
        except ForbiddenError as error:
            _note_refusal(backend, code, error)
            raise
    backend.nats_users.refresh()
    return package


def _enrol(backend: Backend, code: EnrolmentRecord, key: str) -> None:
    """Enrol a plant, or give it its new key; nothing where the same key has used the code a moment ago.

    The plant asks again where an answer takes long: refused, it would throw the key away by which it is enrolled.
    """
    with backend.store.atomic() as store:
        if not store.enrolment_codes.use(code.code_id, key):
            found = store.enrolment_codes.find(code.code_id)
            if found is not None and found.record.used_key == key:
                return
            raise ForbiddenError("this enrolment code was used already; ask the OEM for another", code="code_used")
        before = _site(store, code.site_id)
        if (before is not None) != code.replaces_key:
            raise ConflictError(f"site {code.site_id} was enrolled or removed since; ask the OEM for another code")
        if before is None:
            after = store.sites.enrol(code.site_id, key, [code.asset_type], code.description)
        else:
            after = store.sites.rotate_key(code.site_id, key, datetime.now(UTC))
        store.audit.append(
            actor=f"code:{code.code_id}", role=None, action="site.enrol" if before is None else "site.rotate_key",
            target=f"site:{code.site_id}", reason=f"with the enrolment code that {code.created_by} made",
            before=before.model_dump(mode="json") if before else None, after=after.model_dump(mode="json"),
        )


def _note_refusal(backend: Backend, code: EnrolmentRecord, error: ForbiddenError) -> None:
    with backend.store.atomic() as store:
        store.audit.append(
            actor=f"code:{code.code_id}", role=None, action="site.enrol_refused", target=f"site:{code.site_id}",
            reason=f"{error.code}: somebody showed the code with its right secret",
        )


def _package(backend: Backend, code: EnrolmentRecord, *, web_socket: bool) -> EnrolmentPackage:
    settings = backend.settings
    authority = settings.nats_authority
    if not settings.nats_seed.is_file() or not (authority is None or authority.is_file()):
        raise UnavailableError("the plant link was never started here, so it has no certificate and no key yet")
    return EnrolmentPackage(
        site_id=code.site_id, asset_type=backend.store.asset_types.get(code.asset_type).asset_type,
        servers=(web_socket and websocket_addresses(settings)) or link_addresses(settings),
        oem_key=public_key(settings.nats_seed),
        authority=None if authority is None else authority.read_text(encoding="utf-8", errors="replace"),
    )


def _site(store: Repositories, site_id: str) -> Site | None:
    """Site that is enrolled now; None where there is none, or it was removed."""
    try:
        site = store.sites.get(site_id)
    except NotFoundError:
        return None
    return None if site.status == "removed" else site


def _asset_type(store: Repositories, site: Site | None, wanted: str | None) -> str:
    known = sorted({each.asset_type.name for each in store.asset_types.list_asset_types()})
    candidates = known if site is None or not site.asset_types else list(site.asset_types)
    if wanted is None and len(candidates) == 1:
        return candidates[0]
    if wanted is None or wanted not in known:
        raise InvalidInputError(
            f"name the asset type of the site's machines: {' or '.join(known) or 'add one first, there is none'}",
            code="unknown_asset_type",
        )
    return wanted
