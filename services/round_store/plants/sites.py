"""Sites: the plants that are enrolled."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import String, cast, or_, select, update
from sqlalchemy.orm import Session

from services.contracts.errors import ConflictError
from services.contracts.history.events import EventKind
from services.contracts.history.site import Site, SiteStatus
from services.contracts.wire.roll import CONNECTED_SECONDS
from services.round_store.database.documents import sentence
from services.round_store.database.queries import insert_new, narrowed, rows_touched, stored_row
from services.round_store.database.session import Repository, utc_now
from services.round_store.operation.events import note
from services.round_store.tables.sites import SiteRow


class SiteRepository(Repository):
    """Enrolled plants. A removed site stays as a row: its rounds name it, and its key is never given to another."""

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
            # Not merge, which would look again and take over the row of another who was a moment quicker.
            row = row or SiteRow()
            for name, value in (dict(site) | {"asset_types": [*asset_types], "earlier_keys": []}).items():
                setattr(row, name, value)
            row.silent_at = None
            insert_new(session, row, f"site {site_id} or its key has just been enrolled by someone else")
            return site

    def get(self, site_id: str) -> Site:
        """Site by id, also a removed one; raise ``NotFoundError``."""
        with self._scope.read() as session:
            return Site.of_record(_row(session, site_id))

    def hold(self, site_id: str) -> Site:
        """Site by id, which nobody else changes until the transaction ends; raise ``NotFoundError``."""
        with self._scope.write() as session:
            return Site.of_record(_row(session, site_id, lock=True))

    def list_sites(self, status: SiteStatus | None = None, asset_type: str | None = None) -> list[Site]:
        """Sites by id; of one status, or taking part in one asset type, where given."""
        wanted = narrowed(select(SiteRow).order_by(SiteRow.site_id), (SiteRow.status, status))
        with self._scope.read() as session:
            sites = [Site.of_record(row) for row in session.scalars(wanted)]
        return sites if asset_type is None else [site for site in sites if asset_type in site.asset_types]

    def rotate_key(self, site_id: str, public_key: str, former_until: datetime) -> Site:
        """Give a site another key; the one before holds until then. ``ConflictError`` where that cannot be.

        Those before that one keep their own ends, unless it ends at once: the plant may use one of them yet.
        The caller has checked that ``public_key`` is a user's nkey.
        """
        with self._scope.write() as session:
            row = _row(session, site_id, lock=True)
            if row.status == "removed":
                raise ConflictError(f"site {site_id} was removed; enrol it again with its new key")
            if public_key == row.public_key:
                raise ConflictError(f"this is the key that site {site_id} has already")
            _check_key_is_free(session, site_id, public_key)
            now = utc_now(session)
            held = Site.of_record(row).former_keys_at(now) if now < former_until else ()
            row.earlier_keys = [each.model_dump(mode="json") for each in held if each.public_key != public_key]
            row.former_key, row.former_key_until = row.public_key, former_until
            row.public_key, row.updated_at = public_key, now
            insert_new(session, row, "this key has just been given to another site")
            return Site.of_record(row)

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
            back = _back(session, [site_id])
            touched = session.execute(
                update(SiteRow)
                .where(SiteRow.site_id == site_id, SiteRow.status != "removed")
                .values(last_seen=utc_now(session), agent_version=sentence(agent_version, 40))
            )
            _note_all(session, back)
            return rows_touched(touched) == 1

    def connected(self, site_ids: Sequence[str]) -> None:
        """Note that these sites are connected now, and of the others which have fallen silent."""
        with self._scope.write() as session:
            now = utc_now(session)
            changes = _back(session, site_ids)
            if site_ids:
                session.execute(update(SiteRow).where(SiteRow.site_id.in_(site_ids)).values(last_seen=now))
            while_ago = timedelta(seconds=CONNECTED_SECONDS)
            # Who was seen later than now was so before the clock was put back.
            away = or_(SiteRow.last_seen < now - while_ago, SiteRow.last_seen > now + while_ago)
            silent = select(SiteRow).where(SiteRow.status == "active", SiteRow.silent_at.is_(None), away)
            for row in session.scalars(silent.order_by(SiteRow.site_id).with_for_update()).all():
                row.silent_at = now
                changes.append(("site.silent", row.site_id, f"last seen {row.last_seen:%Y-%m-%d %H:%M:%S} UTC"))
            _note_all(session, changes)

    def set_notice(self, site_id: str, notice: str) -> bool:
        """Say what stands in a site's way, nothing where it is empty; whether that is new."""
        with self._scope.write() as session:
            row = _row(session, site_id, lock=True)
            changed, row.notice = row.notice != notice, sentence(notice)
            return changed

    def _set_status(self, site_id: str, status: SiteStatus) -> Site:
        with self._scope.write() as session:
            row = _row(session, site_id, lock=True)
            if row.status == "removed" and status != "removed":
                raise ConflictError(f"site {site_id} was removed; enrol it again")
            if row.status != status:
                row.status, row.updated_at = status, utc_now(session)
            return Site.of_record(row)


def _note_all(session: Session, changes: Sequence[tuple[EventKind, str, str]]) -> None:
    """Write events of sites, after all rows were changed: who changes a site locks it first, then the trail."""
    session.flush()
    for kind, site_id, reason in changes:
        note(session, kind, site_id=site_id, reason=reason)


def _back(session: Session, site_ids: Sequence[str]) -> list[tuple[EventKind, str, str]]:
    """Events of those of these sites that were silent, or never there, until now."""
    away = or_(SiteRow.silent_at.is_not(None), SiteRow.last_seen.is_(None))
    wanted = select(SiteRow).where(SiteRow.site_id.in_(site_ids), SiteRow.status != "removed", away)
    found: list[tuple[EventKind, str, str]] = []
    for row in session.scalars(wanted.order_by(SiteRow.site_id).with_for_update()).all():
        found.append(("site.back", row.site_id, "for the first time" if row.last_seen is None else ""))
        row.silent_at = None
    return found


def _check_key_is_free(session: Session, site_id: str, public_key: str) -> None:
    bearer = or_(
        SiteRow.public_key == public_key, SiteRow.former_key == public_key,
        cast(SiteRow.earlier_keys, String).contains(f'"{public_key}"', autoescape=True),
    )
    owner = session.scalar(select(SiteRow.site_id).where(bearer, SiteRow.site_id != site_id).limit(1))
    if owner is not None:
        raise ConflictError(f"this key belongs to site {owner}; make a new one for site {site_id}")


def _row(session: Session, site_id: str, *, lock: bool = False) -> SiteRow:
    return stored_row(session, SiteRow, site_id, f"no site {site_id} is enrolled", lock=lock)
