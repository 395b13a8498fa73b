"""Enrolment of plants."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from api.backend.actor import Actor, record
from api.backend.oem_keys import check_not_oems
from api.backend.wiring import Backend
from api.sites.schemas import KeyChange, SiteEnrolment
from services.contracts.errors import BallastError, InvalidInputError, UnavailableError
from services.contracts.history.audit import OEM_KEY_CHANGED
from services.contracts.history.site import Site
from services.contracts.keys.signed_documents import signed_digest
from services.contracts.versions.model_version import ModelVersion
from services.identity.enrolment import check_site_key
from services.round_store.plants.sites import SiteRepository
from services.round_store.store import Repositories


def enrol(backend: Backend, actor: Actor, wanted: SiteEnrolment) -> Site:
    """Enrol a plant, or a removed one again.

    ``InvalidInputError`` for a key that is no public key, or an asset type that is not there; ``ConflictError`` when
    the id or the key is taken, or the key is the OEM's.
    """
    key = check_site_key(wanted.public_key)
    check_not_oems(backend.settings, wanted.site_id, key)
    with backend.store.atomic() as store:
        _check_asset_types(store, wanted)
        before = next((site for site in store.sites.list_sites() if site.site_id == wanted.site_id), None)
        site = store.sites.enrol(wanted.site_id, key, tuple(dict.fromkeys(wanted.asset_types)), wanted.description)
        record(store, actor, "site.enrol", f"site:{site.site_id}", before=before, after=site)
    backend.nats_users.refresh()
    return site


def rotate_key(backend: Backend, actor: Actor, site_id: str, wanted: KeyChange) -> Site:
    """Give a plant another key; the one before holds beside it for the overlap, and no connection of it after.

    Raises
    ------
    InvalidInputError
        For a key that is no public key.
    ConflictError
        When the key is taken or the OEM's, or the plant was removed.
    """
    key = check_site_key(wanted.public_key)
    check_not_oems(backend.settings, site_id, key)
    until = datetime.now(UTC) + timedelta(hours=wanted.overlap_hours)
    with backend.store.atomic() as store:
        before = store.sites.hold(site_id)
        after = store.sites.rotate_key(site_id, key, until)
        record(store, actor, "site.rotate_key", f"site:{site_id}", before=before, after=after, reason=wanted.reason)
    backend.nats_users.refresh()
    return after


def rotate_coordinator(
    backend: Backend, actor: Actor, overlap: timedelta, reason: str = "", *, stolen: bool = False
) -> tuple[str, str]:
    """Give the coordinator another key; the new and the former one, which holds for the overlap.

    ``stolen``: the former key ends at once, and vouches for the versions that are in the registry now and no others.
    """
    until = datetime.now(UTC) + (timedelta(0) if stolen else overlap)
    standing = registered_digests(backend) if stolen else None
    with backend.store.atomic() as store:
        store.audit.take_turn()
        key, former = backend.nats_users.rotate_coordinator(until, standing)
        change: dict[str, Any] = {"public_key": key, "former_key_until": until.isoformat()}
        if standing is not None:
            change |= {"stolen": True, "versions_that_stand": len(standing)}
        record(
            store, actor, OEM_KEY_CHANGED, "coordinator", before={"public_key": former}, after=change,
            reason=reason,
        )
    backend.nats_users.refresh()
    return key, former


def registered_digests(backend: Backend) -> frozenset[str]:
    """Digests of all signed versions in the registry; ``UnavailableError`` where one of them cannot be read."""
    found = (
        _readable(backend, model.name, label.version)
        for model in backend.registry.models() for label in backend.registry.versions(model.name)
    )
    return frozenset(signed_digest(version.to_document()) for version in found if version.signature)


def _readable(backend: Backend, name: str, version: str) -> ModelVersion:
    try:
        return backend.checked.get(name, version)
    except BallastError as error:  # left out, it would never be trusted again
        raise UnavailableError(
            f"version {version} of {name} cannot be read, and the statement of a stolen key lists all versions that "
            f"stand: {error}. `ballast site rotate-coordinator-key --overlap 0h` ends the key now; put the version's "
            "files back, then `--stolen` takes from the former keys what no list names", code="version_unreadable",
        ) from error


def suspend(backend: Backend, actor: Actor, site_id: str, reason: str = "") -> Site:
    """Ask a site no more, and cut its connection, until it is activated."""
    return _change(backend, actor, site_id, "site.suspend", SiteRepository.suspend, reason)


def activate(backend: Backend, actor: Actor, site_id: str, reason: str = "") -> Site:
    """Ask a suspended site again."""
    return _change(backend, actor, site_id, "site.activate", SiteRepository.reactivate, reason)


def remove(backend: Backend, actor: Actor, site_id: str, reason: str = "") -> Site:
    """End a site's enrolment; only a new one brings it back. Enrolment codes of it hold no more."""
    return _change(backend, actor, site_id, "site.remove", SiteRepository.remove, reason, ends_codes=True)


def _change(
    backend: Backend,
    actor: Actor,
    site_id: str,
    action: str,
    change: Callable[[SiteRepository, str], Site],
    reason: str,
    *,
    ends_codes: bool = False,
) -> Site:
    with backend.store.atomic() as store:
        if ends_codes:  # before the site, as where a code is used
            store.enrolment_codes.revoke_unused(site_id)
        before = store.sites.hold(site_id)
        after = change(store.sites, site_id)
        if after != before:
            record(store, actor, action, f"site:{site_id}", before=before, after=after, reason=reason)
    backend.nats_users.refresh()
    return after


def _check_asset_types(store: Repositories, wanted: SiteEnrolment) -> None:
    known = {record.asset_type.name for record in store.asset_types.list_asset_types()}
    missing = sorted(set(wanted.asset_types) - known)
    if missing:
        raise InvalidInputError(
            f"site {wanted.site_id} names an asset type that is not there: {', '.join(missing)}; add it first",
            code="unknown_asset_type",
        )
