"""``ballast bus``: NATS servers of their own, as a cluster, that let in whoever the round store says."""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

from api.backend.nats_users import NatsUsers
from api.cli.common import add_home
from services.bus.cluster import CLIENT_PORT, ROUTE_PORT, make_cluster, read_server
from services.bus.configuration import BusFiles
from services.bus.reload import running_pid
from services.bus.server import command
from services.contracts.errors import BallastError, InvalidInputError, UnavailableError
from services.process.command_line import add_json, add_ready_json, port, print_line, tell
from services.process.private_files import UMASK, private_folder
from services.process.settings import Settings
from services.round_store.database.session import Database, make_engine
from services.round_store.store import RoundStore

FOLLOW_SECONDS = 1.0
"""Between two looks at the sites: a plant whose key was enrolled a moment ago tries for three seconds."""
STOP_SECONDS = 10.0  # to end by itself, before it is killed
KEPT = ("server.pem", "server.key", "ca.pem", "nats.conf", "users.conf", "coordinator.pub")
"""What a server's folder holds before it has run."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    made = actions.add_parser("init", help="make the files of a cluster: certificates, configurations, keys")
    made.add_argument("folder", type=Path, help="folder to make: one below it for each server")
    made.add_argument(
        "--server", action="append", required=True, metavar="NAME=HOST[,HOST]",
        help="a server and its names in its certificate, the one by which the others find it first; one for each",
    )
    made.add_argument("--port", type=port, default=CLIENT_PORT, help=f"where plants connect (default {CLIENT_PORT})")
    made.add_argument(
        "--websocket-port", type=port, help="where plants connect by WebSocket over TLS, such as 443 (default: nowhere)"
    )
    made.add_argument("--route-port", type=port, default=ROUTE_PORT, help=f"between servers (default {ROUTE_PORT})")
    add_json(made)
    made.set_defaults(act=_init)
    served = actions.add_parser("serve", help="run one server of a cluster, with the users that the store gives it")
    served.add_argument("folder", type=Path, help="folder of this server that `ballast bus init` made")
    served.add_argument("--runtime", type=Path, help="copy the folder there first, where it is read-only itself")
    add_home(served)
    add_ready_json(served)
    served.set_defaults(act=_serve)


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked."""
    code: int = arguments.act(arguments)
    return code


def _init(arguments: argparse.Namespace) -> int:
    read = [read_server(text, arguments.port, arguments.route_port) for text in arguments.server]
    members = [replace(each, websocket_port=arguments.websocket_port) for each in read]
    files = make_cluster(arguments.folder, members)
    value = {
        "coordinator": str(arguments.folder / "coordinator.nk"),
        "servers": {name: str(own.folder) for name, own in files.items()},
    }
    said = f"coordinator.nk in {arguments.folder} is the OEM's private key: it goes to the API and the flows alone"
    tell(arguments, value, said, *(f"{name}: {own.folder} goes to that server alone" for name, own in files.items()))
    return 0


def _serve(arguments: argparse.Namespace) -> int:
    settings = Settings.load(arguments.home)
    files = _runtime(arguments.folder, arguments.runtime)
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    store = RoundStore(Database(make_engine(settings.database)))
    users = NatsUsers(files, store.sites)
    _follow(users)
    files.pid.unlink(missing_ok=True)
    process = subprocess.Popen(command(files), cwd=files.folder, stdin=subprocess.DEVNULL, umask=UMASK)
    is_told = False
    try:
        while process.poll() is None and not stopped.wait(FOLLOW_SECONDS):
            if is_told or running_pid(files) is not None:
                # The first time in any case: what changed while the server started, it may not have read.
                was_told, is_told = is_told, _follow(users, only_if_due=is_told) or is_told
                if arguments.json and is_told and not was_told:
                    print_line({"folder": str(files.folder), "pid": process.pid})
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        store.close()
    if not stopped.is_set():
        raise UnavailableError(f"nats-server ended by itself with exit code {process.returncode}")
    return 0


def _follow(users: NatsUsers, *, only_if_due: bool = True) -> bool:
    """Bring the users up to date; whether that went well. If not, whoever was let in before stays so."""
    try:
        users.refresh(only_if_due=only_if_due)
    except BallastError as error:
        print(f"the users are not brought up to date: {error}", file=sys.stderr, flush=True)
        return False
    return True


def _runtime(folder: Path, runtime: Path | None) -> BusFiles:
    missing = [name for name in KEPT if not (folder / name).is_file()]
    if missing:
        raise InvalidInputError(f"{folder} has no {', '.join(missing)}; `ballast bus init` makes a server's folder")
    if runtime is None:
        return BusFiles(folder)
    if runtime.resolve() == folder.resolve():
        raise InvalidInputError(f"--runtime names the server's own folder, {folder}: leave it out, or give another")
    private_folder(runtime)
    for name in KEPT:
        shutil.copyfile(folder / name, runtime / name)
        (runtime / name).chmod(0o600)
    return BusFiles(runtime)
