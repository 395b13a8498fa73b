"""Carries the list of active sites over to the embedded NATS server."""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from services.bus.configuration import BusFiles
from services.bus.server import are_users_current, coordinator_line, rotate_coordinator, update_users
from services.contracts.errors import ConflictError, UnavailableError
from services.contracts.keys.key_chain import KeyStatement
from services.process.private_files import private_opener
from services.round_store.plants.sites import SiteRepository


class ChangeStoredError(UnavailableError):
    """A change is made, and the NATS server has not taken it yet: whoever asks for it again finds it made."""

    code = "change_stored"


class NatsUsers:
    """Who may connect to the embedded server: the active sites, and nobody else.

    ``files`` is None where the settings name a server that is not ours; then its owner says who may connect.
    """

    def __init__(self, files: BusFiles | None, sites: SiteRepository) -> None:
        self._files = files
        self._sites = sites
        self._lock = threading.Lock()

    def rotate_coordinator(
        self, former_until: datetime, standing: Iterable[str] | None = None
    ) -> tuple[str, str]:
        """Give the coordinator another key; the new and the former one. Call :meth:`refresh` after it.

        ``standing`` given: the former key was stolen, and of what it signed only the versions of these digests stand.

        Raises
        ------
        ConflictError
            Where the server is not ours, or was never started.
        """
        files = self._files
        if files is None or not files.coordinator_seed.exists():
            raise ConflictError(
                "the coordinator's key is not here to change: the settings name a NATS server of their own, or "
                "`ballast up` was never run"
            )
        with self._lock, _file_lock(files):
            return rotate_coordinator(files, former_until, standing)

    @property
    def line(self) -> tuple[KeyStatement, ...]:
        """Statements of all changes of the coordinator's key; empty where the server is not ours."""
        return () if self._files is None else coordinator_line(self._files)

    def refresh(self, *, only_if_due: bool = False) -> None:
        """Write the users anew and let a running server read them; connections of keys that are gone are cut.

        With ``only_if_due`` only where a key has come to its end, or somebody changed the file.

        Before the first ``ballast up`` there is nothing to write: it begins with the list of that moment.

        Raises
        ------
        ChangeStoredError
            When the files cannot be written, or the server does not take them. The store has the change then, and so
            has the next start of the server.
        """
        files = self._files
        if files is None or not (files.coordinator_seed.exists() or files.coordinator_public.exists()):
            return
        try:
            with self._lock, _file_lock(files):
                # Read inside the lock: of two changes at a time, the later writer has seen both.
                keys = active_keys(self._sites)
                if not (only_if_due and are_users_current(files, keys)):
                    update_users(files, keys)
        except (ConflictError, UnavailableError) as error:
            raise ChangeStoredError(
                f"the change is stored, but does not hold on the plant link: {error}. Until it does, the server lets "
                "in who was enrolled before; `ballast doctor` looks at it"
            ) from error
        except OSError as error:
            raise ChangeStoredError(
                f"the change is stored, but the NATS server's users in {files.users} could not be written: "
                f"{error.strerror or type(error).__name__}. Until they are, the server lets in who was enrolled before"
            ) from error


def active_keys(sites: SiteRepository) -> dict[str, str]:
    """Public keys of the active sites that hold now, by site id."""
    now = datetime.now(UTC)
    return {site.site_id: site.keys_at(now) for site in sites.list_sites(status="active")}


@contextmanager
def _file_lock(files: BusFiles) -> Iterator[None]:
    """Hold the lock that other processes on this host take too."""
    with open(files.folder / "users.lock", "w", encoding="ascii", opener=private_opener) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
