"""Sites: the plants that are enrolled."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from services.contracts.errors import ConflictError, NotFoundError
from services.contracts.site import Site, SiteStatus
from services.round_store.documents import sentence
from services.round_store.queries import rows_touched
from services.round_store.session import SessionProvider, utc_now
from services.round_store.tables import SiteRow

_FIELDS = tuple(Site.model_fields)


class SiteRepository:
    """Enrolled plants. A removed site stays as a row: its rounds name it, and its key is never given to another."""

    def __init__(self, scope: SessionProvider) -> None:
        self._scope = scope

    def enrol(self, site_id: str, public_key: str, asset_types: Sequence[str] = (), description: str = "") -> Site:
        """Enrol a plant, or a removed one again; ``ConflictError`` when the id or the key is taken.

        The caller has checked that ``public_key`` is a user's nkey.
        """
        with self._scope.write() as session:
            _check_key_is_free(session, site_id, public_key)
            row = session.get(SiteRow, site_id, with_for_update=True, populate_existing=True)
            if row is not None and row.status != "removed":
                raise ConflictError(f"there is a site {site_id} already; remove it first to enrol it with another key")
            now = utc_now(session)
            site = Site(
                site_id=site_id,
                public_key=public_key,
                asset_types=tuple(asset_types),
                description=sentence(description),
                enrolled_at=now,
                updated_at=now,
            )
            if row is None:
                # Not merge, which would look again and take over the row of another who was a moment quicker.
                session.add(SiteRow(**_values(site)))
            else:
                for name, value in _values(site).items():
                    setattr(row, name, value)
            try:
                session.flush()
            except IntegrityError:
                raise ConflictError(f"site {site_id} or its key has just been enrolled by someone else") from None
            return site

    def get(self, site_id: str) -> Site:
        """Site by id, also a removed one; raise ``NotFoundError``."""
        with self._scope.read() as session:
            return _to_site(_row(session, site_id))

    def list_sites(self, status: SiteStatus | None = None, asset_type: str | None = None) -> list[Site]:
        """Sites by id; of one status, or taking part in one asset type, where given."""
        wanted = select(SiteRow).order_by(SiteRow.site_id)
        if status is not None:
            wanted = wanted.where(SiteRow.status == status)
        with self._scope.read() as session:
            sites = [_to_site(row) for row in session.scalars(wanted)]
        return sites if asset_type is None else [site for site in sites if asset_type in site.asset_types]

    def rotate_key(self, site_id: str, public_key: str, former_until: datetime) -> Site:
        """Give a site another key; the one before holds until then. ``ConflictError`` where that cannot be.

        The caller has checked that ``public_key`` is a user's nkey.
        """
        with self._scope.write() as session:
            row = _row(session, site_id, lock=True)
            if row.status == "removed":
                raise ConflictError(f"site {site_id} was removed; enrol it again with its new key")
            if public_key == row.public_key:
                raise ConflictError(f"this is the key that site {site_id} has already")
            _check_key_is_free(session, site_id, public_key)
            row.former_key, row.former_key_until = row.public_key, former_until
            row.public_key, row.updated_at = public_key, utc_now(session)
            try:
                session.flush()
            except IntegrityError:
                raise ConflictError("this key has just been given to another site") from None
            return _to_site(row)

    def suspend(self, site_id: str) -> Site:
        """Ask the site no more, until it is reactivated."""
        return self._set_status(site_id, "suspended")

    def reactivate(self, site_id: str) -> Site:
        """Ask a suspended site again."""
        return self._set_status(site_id, "active")

    def remove(self, site_id: str) -> Site:
        """End the enrolment; only a new enrolment brings the site back."""
        return self._set_status(site_id, "removed")

    def seen(self, site_id: str, agent_version: str) -> bool:
        """Note that an agent said hello; False when no site of that id is enrolled."""
        with self._scope.write() as session:
            touched = session.execute(
                update(SiteRow)
                .where(SiteRow.site_id == site_id, SiteRow.status != "removed")
                .values(last_seen=utc_now(session), agent_version=sentence(agent_version, 40))
            )
            return rows_touched(touched) == 1

    def _set_status(self, site_id: str, status: SiteStatus) -> Site:
        with self._scope.write() as session:
            row = _row(session, site_id, lock=True)
            if row.status == "removed" and status != "removed":
                raise ConflictError(f"site {site_id} was removed; enrol it again")
            if row.status != status:
                row.status, row.updated_at = status, utc_now(session)
            return _to_site(row)


def _check_key_is_free(session: Session, site_id: str, public_key: str) -> None:
    bearer = or_(SiteRow.public_key == public_key, SiteRow.former_key == public_key)
    owner = session.scalar(select(SiteRow.site_id).where(bearer, SiteRow.site_id != site_id).limit(1))
    if owner is not None:
        raise ConflictError(f"this key belongs to site {owner}; make a new one for site {site_id}")


def _row(session: Session, site_id: str, *, lock: bool = False) -> SiteRow:
    row = session.get(SiteRow, site_id, with_for_update=lock or None, populate_existing=True)
    if row is None:
        raise NotFoundError(f"no site {site_id} is enrolled")
    return row


def _values(site: Site) -> dict[str, object]:
    return {name: getattr(site, name) for name in _FIELDS} | {"asset_types": [*site.asset_types]}


def _to_site(row: SiteRow) -> Site:
    return Site(**{name: getattr(row, name) for name in _FIELDS})
