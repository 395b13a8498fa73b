"""The OEM's own keys, which no plant may bear: the NATS server knows each key once."""

from __future__ import annotations

from datetime import UTC, datetime

from services.bus.configuration import BusFiles
from services.bus.server import coordinator_keys, coordinator_line
from services.contracts.errors import ConflictError
from services.contracts.keys.signing import public_key
from services.process.settings import Settings


def oem_keys(settings: Settings) -> frozenset[str]:
    """Public keys of the coordinator, the present one and all before it; none where its key is not on this host."""
    if not settings.nats_seed.is_file():
        return frozenset()
    found = {public_key(settings.nats_seed)}
    files = BusFiles(settings.bus_folder)
    if files.coordinator_seed.exists() and not settings.nats.servers:
        found |= {*coordinator_keys(files, datetime.now(UTC)).split()}
        found |= {key for change in coordinator_line(files) for key in (change.former, change.next)}
    return frozenset(found)


def check_not_oems(settings: Settings, site_id: str, key: str) -> None:
    """Raise ``ConflictError`` where a key that a site is to bear is the OEM's, now or before."""
    if key in oem_keys(settings):
        raise ConflictError(f"this key is the OEM's own; site {site_id} needs one that was made at the plant")
