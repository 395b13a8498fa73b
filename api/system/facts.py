"""The facts of this host that the checks judge: ports, disk, files, certificates, clocks. Nothing is changed."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from cryptography import x509

from api.backend.answering import answers, greets, prefect_answers
from api.backend.disk_space import least_room
from api.system import host_checks
from api.system.finding import Finding
from services.bus.configuration import BusFiles, hears_websockets
from services.bus.reload import running_pid
from services.bus.server import check_port_free
from services.contracts.errors import ConflictError
from services.process.listeners import other_home, serves
from services.process.settings import FILE_NAME, Settings

SECRET_NAMES = (
    "*.nk", "*.key", "secrets/*", "*.db", "*.db-wal", "coordinator-former.json", "ballast.toml", "prefect-client.toml",
    "prefect-server.toml", "token",
)
"""Keys, passwords (Prefect's stand in its profiles), and the databases with the rows that SQLite has not moved yet."""
_MAY_HOLD_A_PASSWORD = re.compile("@|passw", re.IGNORECASE)
"""What settings have, where an address in them holds a password: ``user:password@host`` or ``?password=``."""


def ports(settings: Settings) -> Iterator[Finding]:
    """Each port that `ballast up` would take."""
    home = settings.home
    at = settings.api.url
    serves_api = cache(lambda: answers(f"{at}/healthz", b'"version"'))
    yield (api := _port(home, "the API", settings.api.host, settings.api.port, serves_api))
    if api.state == "ok" and serves_api() and not answers(f"{at}/readyz", b'"ready":true'):
        yield Finding(check="API", state="warn", said="answers, and is not ready", todo=f"{at}/readyz says why")
    if not settings.nats.servers:
        files = BusFiles(settings.bus_folder)

        def runs() -> bool:
            return running_pid(files) is not None

        yield _port(home, "the NATS server", settings.nats.host, settings.nats.port,
                    lambda: runs() and greets(settings.nats.host, settings.nats.port), runs)
        if (web := settings.nats.websocket_port) is not None:
            yield _port(home, "the NATS server's WebSocket", settings.nats.host, web,
                        lambda: runs() and hears_websockets(files, web))
    if not settings.prefect.api_url:
        yield _port(home, "the Prefect server", settings.prefect.host, settings.prefect.port,
                    lambda: prefect_answers(settings))
    if not settings.mlflow.tracking_uri:
        pages = f"{settings.mlflow.own_url}/health"
        yield _port(home, "the MLflow server", settings.mlflow.host, settings.mlflow.port,
                    lambda: answers(pages, b"OK"))


def disk(settings: Settings) -> Finding:
    """Room where the service writes and has the least."""
    return host_checks.disk(*least_room(settings))


def secrets(settings: Settings) -> Finding:
    """Modes and owners of what opens something."""
    modes = {}
    for path in _secrets_in(settings):
        found = _seen(path)
        if found is not None and stat.S_ISREG(found.st_mode) and not _may_be_read(path, found):
            modes[path] = (found.st_mode, found.st_uid)
    for named in (settings.api.key, settings.nats.seed_file):
        if named is not None and (found := _seen(named)) is not None and stat.S_ISREG(found.st_mode):
            modes[named] = (found.st_mode, found.st_uid)
    folders = {settings.home, *(each for path in modes for each in path.parents if settings.home in each.parents)}
    there = {path: found.st_mode for path in folders if (found := _seen(path)) is not None}
    return host_checks.permissions(modes, os.geteuid(), there)


def _secrets_in(settings: Settings) -> set[Path]:
    """Files of the home folder that open something; a log of SQLite and a copy for a backup may go at any time."""
    found = {*settings.secrets_folder.glob("*")}  # also where a link leads there
    for at, folders, names in os.walk(settings.home):
        folders[:] = [each for each in folders if each != "mlflow-artifacts"]
        paths = [Path(at, name) for name in names]
        found.update(path for path in paths if any(path.match(pattern) for pattern in SECRET_NAMES))
    return found


def _seen(path: Path) -> os.stat_result | None:
    """What the system knows of a file or a folder; None where it is gone."""
    try:
        return path.stat()
    except OSError:
        return None


def _may_be_read(path: Path, found: os.stat_result) -> bool:
    """Whether these are our settings, without a password, that others may read, as an editor leaves them, not write."""
    if path.name != FILE_NAME or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        return False
    try:
        return not _MAY_HOLD_A_PASSWORD.search(path.read_text(errors="replace"))
    except OSError:  # as it is written anew
        return False


def certificates(settings: Settings, now: datetime) -> Iterator[Finding]:
    """When the certificates of the plant link and the API end."""
    bus, renew = BusFiles(settings.bus_folder), (
        "stop the service, delete ca.pem, server.pem and server.key in {}, start again, "
        "and give all plants the new ca.pem"
    )
    if not settings.nats.servers:
        for path in (bus.certificate, bus.authority):
            if path.exists():
                yield host_checks.certificate(f"of the plant link ({path.name})", _holds(path), now,
                                         renew.format(bus.folder))
    if settings.api.certificate is not None:
        yield host_checks.certificate("of the API", _holds(settings.api.certificate), now,
                                 f"put a new one at {settings.api.certificate} and start again")
    elif settings.api.uses_tls and (own := settings.tls_folder / "server.pem").exists():
        yield host_checks.certificate("of the API", _holds(own), now,
                                 f"stop the service, delete the files in {settings.tls_folder} and start again; "
                                 "enrolment codes made before hold no more")


def _holds(path: Path) -> tuple[datetime, datetime] | None:
    """From when to when all certificates of a chain hold."""
    try:
        chain = x509.load_pem_x509_certificates(path.read_bytes())
    except (OSError, ValueError):
        return None
    return max(each.not_valid_before_utc for each in chain), min(each.not_valid_after_utc for each in chain)


def _port(
    home: Path, purpose: str, host: str, number: int, ours: Callable[[], bool], runs: Callable[[], bool] = bool,
) -> Finding:
    """A port: ``ours`` where what we want there answers, ``runs`` where it does at least run."""
    try:
        check_port_free(host, number, purpose)
    except ConflictError as error:
        if error.code != "port_taken" and not ours():  # ours may be there by a right that who looks does not have
            return host_checks.unusable_port(number, str(error))
        answers = ours()
        hangs = not answers and (runs() or serves(number, home))
        return host_checks.port(purpose, number, free=False, ours=answers, other=other_home(number, home), hangs=hangs)
    return host_checks.port(purpose, number, free=True, ours=False)


def utc_now() -> datetime:
    """Now, by this host's clock."""
    return datetime.now(UTC)
