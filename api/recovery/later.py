"""What a later state of the same service knows that a backup does not: who left since, and what was ended.

The later state is a home folder that is still there, or a newer backup. Its audit trail must go on from the backup's:
then all that it says after the backup's last entry happened since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from api.backend.wiring import Backend
from api.recovery.kept_inside import without_elsewhere
from services.backup import archive, tables
from services.backup.archive import Manifest
from services.backup.sealed_stream import SealedReader
from services.contracts.errors import ConflictError, UnavailableError
from services.contracts.history.audit import GENESIS, AuditEvent
from services.process.settings import Settings
from services.round_store.database.queries import MAX_PAGE
from services.round_store.database.session import Database, make_engine
from services.round_store.store import RoundStore

EVENTS: Final = f"{archive.STORE}audit_events/"
ENDED: Final = (
    "site.remove", "site.suspend", "site.rotate_key", "site.revoke_code", "token.revoke", "coordinator.rotate_key",
    "key.replace", "webhook.remove", "plan.archive", "plan.delete", "plan.pause",
)
"""Actions whose effect a restore takes back: what they ended holds again."""


@dataclass(frozen=True)
class Departure:
    """A plant that was unlearned since: of which model and when.

    ``at_once``: older versions were not to wait for a champion; ``back``: the plant was enrolled again after that.
    """

    model: str
    site: str
    at: datetime
    at_once: bool
    back: bool = False


Unlearn = Callable[[Backend, Iterable[Departure]], tuple[list[str], list[str]]]
"""Unlearns plants again: a line for each, and one for what somebody has to see to himself."""


def events_since(
    later: Path, manifest: Manifest, passphrase: str, environment: Mapping[str, str]
) -> tuple[AuditEvent, ...]:
    """Entries of a later state's audit trail that a backup's does not have yet, oldest first.

    ``ConflictError`` where its trail does not go on from the backup's or does not hold; ``UnavailableError`` where it
    cannot be read.
    """
    found = _of_home(later, manifest, environment) if later.is_dir() else _of_backup(later, manifest, passphrase)
    if manifest.audit_events:
        last = next(found, None)
        if last is None or last.hash != manifest.audit_head:
            raise ConflictError(
                f"{later} is no later state of what the backup was made of: its audit trail does not go on from the "
                f"backup's entry {manifest.audit_events}"
            )
    return tuple(_linked(later, found, manifest.audit_head if manifest.audit_events else GENESIS))


def departures(events: Iterable[AuditEvent]) -> list[Departure]:
    """Plants that were unlearned, in their order; not where that was cancelled."""
    found = dict[tuple[str, str], Departure]()
    runs = dict[str, tuple[str, str]]()
    for event in events:
        kind, _, name = event.target.partition(":")
        after = event.after or {}
        if event.action == "model.unlearn":
            key = name, str(after.get("site"))
            found[key] = Departure(*key, event.at, after.get("purge") == "now")
            runs[str(after.get("run_id"))] = key
        elif event.action == "run.cancel":
            found.pop(runs.get(name, ("", "")), None)
        elif event.action == "site.enrol" and kind == "site":
            found = {key: replace(each, back=each.back or key[1] == name) for key, each in found.items()}
    return list(found.values())


def ended(events: Iterable[AuditEvent]) -> list[str]:
    """A line for each thing that was ended since and holds again; without the removal of a plant that is unlearned."""
    events = list(events)
    gone = {each.site for each in departures(events)}
    return [
        _since(event) for event in events
        if (event.action in ENDED or _used_a_code(event))
        and not (event.action == "site.remove" and event.target.removeprefix("site:") in gone)
    ]


def cancelled(events: Iterable[AuditEvent], unfinished: Iterable[str]) -> list[str]:
    """A line for each unfinished run that was cancelled since: what is restored goes on with it."""
    found = {event.target.removeprefix("run:"): event for event in events if event.action == "run.cancel"}
    return [
        f"{_since(found[run_id])}, and goes on until `ballast run cancel {run_id}` is said again"
        for run_id in unfinished if run_id in found
    ]


def _since(event: AuditEvent) -> str:
    what = f"{event.action} of {event.target}" + (f" ({event.reason})" if event.reason else "")
    return f"since the backup, on {event.at:%Y-%m-%d %H:%M}: {what}; it is as before that"


def _used_a_code(event: AuditEvent) -> bool:
    """Whether a plant enrolled by its one-time code, which holds once more in what is restored."""
    return event.action == "site.enrol" and event.actor.startswith("code:")


def _of_home(home: Path, manifest: Manifest, environment: Mapping[str, str]) -> Iterator[AuditEvent]:
    settings = Settings.load(home, without_elsewhere(environment))
    engine = make_engine(settings.database)
    store = RoundStore(Database(engine))
    try:
        found, before = list[AuditEvent](), None
        while page := store.audit.list_events(limit=MAX_PAGE, before=before):
            found += [event for event in page if event.number >= manifest.audit_events]
            before = page[-1].number
            if before <= manifest.audit_events:
                break
        return reversed(found)
    finally:
        store.close()


def _of_backup(file: Path, manifest: Manifest, passphrase: str) -> Iterator[AuditEvent]:
    found = list[AuditEvent]()
    try:
        with file.open("rb") as opened:
            members = archive.members(SealedReader(opened, passphrase))
            archive.read_manifest(*next(members, ("", b"")))
            for name, data in members:
                if name.startswith(EVENTS):
                    found += [_event(row) for row in tables.rows(data)]
    except OSError as error:
        raise UnavailableError(f"{file} cannot be read: {error.strerror or error}") from error
    return (event for event in found if event.number >= manifest.audit_events)


def _event(row: Mapping[str, Any]) -> AuditEvent:
    try:
        return AuditEvent.model_validate({name: row.get(name) for name in AuditEvent.model_fields})
    except ValidationError:
        raise ConflictError("the later backup has an entry of the audit trail that cannot be read") from None


def _linked(later: Path, events: Iterable[AuditEvent], previous: str) -> Iterator[AuditEvent]:
    for event in events:
        if event.previous_hash != previous or event.expected_hash() != event.hash:
            raise ConflictError(f"the audit trail of {later} does not hold: entry {event.number} was changed")
        previous = event.hash
        yield event
