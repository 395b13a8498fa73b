"""Keys, certificates and secrets of the home folder for ``ballast doctor``: there, whole, and fitting one another."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from api.backend.wiring import Backend
from api.system.finding import Finding
from services.bus.configuration import BusFiles, TlsFiles
from services.bus.server import coordinator_line
from services.contracts.errors import BallastError
from services.contracts.history.audit import OEM_KEY_CHANGED
from services.contracts.keys.signing import public_key
from services.identity.server_secrets import ServerSecrets
from services.identity.service_keys import MEANINGS, WEBHOOKS, read_key
from services.process.settings import Settings

FROM_BACKUP: Final = "put it back from a backup: `ballast restore` into another folder, then copy it from there"


def keys(settings: Settings) -> Iterator[Finding]:
    """Each key and secret that the service would start with; nothing of a service that was never started."""
    bus = BusFiles(settings.bus_folder)
    if settings.nats.seed_file is not None:
        yield _checked("the OEM's key", lambda: public_key(settings.nats_seed), "give the file that holds it")
    elif not settings.nats.servers and bus.configuration.exists():
        yield _checked("the OEM's key", lambda: _line_ends_at(bus), FROM_BACKUP)
        yield _checked("pair of the plant link", lambda: _pair(bus), (
            f"put the files back from a backup, or delete ca.pem, server.pem and server.key in {bus.folder}, start "
            "again, and give all plants the new ca.pem"))
    if settings.api.certificate is not None and settings.api.key is not None:
        yield _checked("pair of the API", lambda: _matches(settings.api.certificate, settings.api.key),
                       "give certificate and key that were made together, in [api] of ballast.toml")
    elif settings.api.uses_tls and settings.tls_folder.exists():
        yield _checked("pair of the API", lambda: _pair(TlsFiles(settings.tls_folder)),
                       f"delete the files in {settings.tls_folder} and start again")
    if settings.secrets_folder.exists():
        yield _checked("servers' passwords", ServerSecrets(settings.secrets_folder).check,
                       "delete the file where there is one and start again: it is made anew")
    for name, meaning in MEANINGS.items():
        path = settings.home / name
        if path.exists():
            yield _checked(name, partial(read_key, path), f"{FROM_BACKUP}; {meaning}")


def lost_keys(backend: Backend, *, known_to: int, webhooks: int) -> Iterator[Finding]:
    """Keys that are gone, or others, though the store says that they were used: by plants, by webhooks, by the API."""
    settings = backend.settings
    bus = BusFiles(settings.bus_folder)
    if known_to and not settings.nats.servers and not bus.configuration.exists() and not bus.coordinator_seed.exists():
        yield Finding(check="the OEM's key", state="fail", todo=FROM_BACKUP,
                      said=f"no key at {bus.coordinator_seed}, and {known_to} plants know it")
    if not settings.nats.servers and bus.coordinator_seed.exists():
        yield from _lost_line(backend, bus)
    if webhooks and not (settings.home / WEBHOOKS).exists() and backend.store.service_keys.find(WEBHOOKS) is None:
        yield Finding(check=WEBHOOKS, state="fail", todo=f"{FROM_BACKUP}; {MEANINGS[WEBHOOKS]}",
                      said=f"{settings.home / WEBHOOKS} is gone, and {webhooks} webhooks are signed by it")
    for name, meaning in MEANINGS.items():
        problem = backend.service_keys.problem(name)
        if problem:
            said, _, todo = problem.partition("; ")
            yield Finding(check=f"{name} of the service", state="fail", said=said, todo=f"{todo}; {meaning}")


def _lost_line(backend: Backend, bus: BusFiles) -> Iterator[Finding]:
    """The statements of changes of the OEM's key lack the newest change that the audit trail tells of."""
    newest = backend.store.audit.list_events(action=OEM_KEY_CHANGED, limit=1)
    if not newest or newest[0].after is None:
        return
    try:
        line = coordinator_line(bus)
    except (BallastError, OSError):  # that it cannot be read is said with the key itself
        return
    if newest[0].after["public_key"] not in {each.next for each in line}:
        yield Finding(
            check="line of the OEM's keys", state="fail", todo=FROM_BACKUP,
            said=f"{bus.coordinator_line} lacks the change of {newest[0].at:%Y-%m-%d %H:%M} UTC: nobody can check what "
            "former keys signed by the present one",
        )


def _checked(check: str, look: Callable[[], object], todo: str) -> Finding:
    try:
        look()
    except (BallastError, OSError, ValueError) as error:
        said = " ".join(str(error).split()) if isinstance(error, BallastError | ssl.SSLError) else _plainly(error)
        return Finding(check=check, state="fail", said=said, todo=todo)
    return Finding(check=check, state="ok", said="there and whole")


def _plainly(error: OSError | ValueError) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__


def _line_ends_at(bus: BusFiles) -> None:
    """Raise where the key is not there or no key, or is none that the statements of its changes lead to."""
    present, line = public_key(bus.coordinator_seed), coordinator_line(bus)
    if line and line[-1].next != present:
        raise ValueError(f"{bus.coordinator_seed} holds {present}, and {bus.coordinator_line.name} ends at "
                         f"{line[-1].next}: plants trust the latter")


def _pair(files: TlsFiles) -> None:
    """Raise where the certificate has another key than the one beside it, or is of another authority."""
    _matches(files.certificate, files.key)
    server, authority = (_certificate(path) for path in (files.certificate, files.authority))
    try:
        server.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        raise ValueError(f"{files.certificate} is not of the authority {files.authority}: no plant would connect"
                         ) from None


def _certificate(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except ValueError:
        raise ValueError(f"{path} is no certificate in PEM") from None


def _matches(certificate: Path | None, key: Path | None) -> None:
    for path in (certificate, key):
        if path is not None:
            path.read_bytes()
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(str(certificate), str(key), password=lambda: "")
    except ssl.SSLError:
        raise ValueError(f"{certificate} and {key} are no certificate and its key") from None
