"""Carries the list of active sites over to the embedded NATS server."""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from services.bus.configuration import BusFiles
from services.bus.server import update_users
from services.contracts.errors import UnavailableError
from services.contracts.private_files import private_opener
from services.round_store.sites import SiteRepository


class NatsUsers:
    """Who may connect to the embedded server: the active sites, and nobody else.

    ``files`` is None where the settings name a server that is not ours; then its owner says who may connect.
    """

    def __init__(self, files: BusFiles | None, sites: SiteRepository) -> None:
        self._files = files
        self._sites = sites
        self._lock = threading.Lock()

    def refresh(self) -> None:
        """Write the users anew and let a running server read them; connections of sites that are gone are cut.

        Before the first ``ballast up`` there is nothing to write: it begins with the list of that moment.

        Raises
        ------
        UnavailableError
            When the files cannot be written. The store has the change then, and so has the next start of the server.
        """
        files = self._files
        if files is None or not files.coordinator_seed.exists():
            return
        try:
            with self._lock, _file_lock(files):
                # Read inside the lock: of two changes at a time, the later writer has seen both.
                keys = {site.site_id: site.public_key for site in self._sites.list_sites(status="active")}
                update_users(files, keys)
        except OSError as error:
            raise UnavailableError(
                f"the change is stored, but the NATS server's users in {files.users} could not be written: "
                f"{error.strerror or type(error).__name__}. Until they are, the server lets in who was enrolled before"
            ) from error


@contextmanager
def _file_lock(files: BusFiles) -> Iterator[None]:
    """Hold the lock that other processes on this host take too."""
    with open(files.folder / "users.lock", "w", encoding="ascii", opener=private_opener) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
