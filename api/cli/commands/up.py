"""``ballast up``: start the OEM's side and keep it running."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from api.backend.addresses import link_addresses, websocket_addresses
from api.backend.first_keys import begin_with_keys
from api.backend.wiring import Backend, open_backend
from api.cli.processes import listening, stack
from api.cli.processes.child_environment import of_a_child
from api.cli.processes.parts import PARTS, become
from api.cli.processes.supervisor import Supervisor
from services.contracts.errors import BallastError, InvalidInputError, UnavailableError
from services.identity.server_secrets import USER, ServerSecrets
from services.process.command_line import add_ready_json, print_line
from services.process.private_files import UMASK, private_folder
from services.process.settings import ApiSettings, MlflowSettings, NatsSettings, PrefectSettings, Settings

PORTS = "\n".join((
    "ports, each to be changed in ballast.toml in the home folder, or in the environment:",
    *(
        f"  {what:<18}{settings.port:>5}   [{section}] port = ...   BALLAST_{section.upper()}_PORT"
        for section, what, settings in (
            ("api", "API and its pages", ApiSettings()), ("nats", "plant link (NATS)", NatsSettings()),
            ("prefect", "Prefect", PrefectSettings()), ("mlflow", "MLflow", MlflowSettings()),
        )
    ),
))
TEND_SECONDS = 0.5  # between two looks whether all children live
KEYS_SECONDS = 5.0  # between two looks whether the NATS server knows just the keys that hold


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "--home", type=Path, help="folder of settings, database and logs (default: $BALLAST_HOME or .ballast)"
    )
    parser.add_argument(
        "--only", choices=tuple(PARTS), help="become this one part alone, as in a container; the settings say "
        "where the others are. The stores must have been prepared (python -m api.cli.commands.prepare)",
    )
    parser.add_argument(
        "--listen", metavar="ADDRESS", help="with --only prefect or mlflow: where it listens within its container"
    )
    add_ready_json(parser)
    parser.epilog = PORTS


def run(arguments: argparse.Namespace) -> int:
    """Start everything, tell where it is, and wait for Ctrl-C or SIGTERM."""
    settings = Settings.load(arguments.home)
    if arguments.only:
        if arguments.json:
            raise InvalidInputError("--json says where all parts are; a part alone (--only) says what it does itself")
        become(arguments.only, settings, arguments.listen)
    if arguments.listen:
        raise InvalidInputError("--listen goes with --only prefect or --only mlflow")
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    listening.check_ports(settings)
    say = _say_aside if arguments.json else _say
    with Supervisor(stack.log_folder(settings), say) as supervisor:
        start_all(supervisor, settings, say)
        if arguments.json:
            print_line(addresses_as_values(settings))
        else:
            say(addresses(settings))
        with open_backend(settings) as backend:
            due = 0.0
            while not stopped.wait(TEND_SECONDS):
                supervisor.tend()
                if time.monotonic() >= due:
                    end_former_keys(backend, say)
                    due = time.monotonic() + KEYS_SECONDS
        say("stopping")
    return 0


def end_former_keys(backend: Backend, say: Callable[[str], None]) -> None:
    """Let the NATS server forget the keys whose overlap is over."""
    try:
        backend.nats_users.refresh(only_if_due=True)
    except BallastError as error:
        say(f"the users of the NATS server are not brought up to date: {error}")


def start_all(supervisor: Supervisor, settings: Settings, say: Callable[[str], None]) -> None:
    """Start every server in an order in which each finds what it needs, as many at once as may be."""
    private_folder(settings.home)
    say(f"starting Ballast in {settings.home}")
    stack.start_prefect(supervisor, settings)
    prepare_stores(settings)
    begin_with_keys(settings)
    stack.start_bus(supervisor, settings)
    stack.start_api(supervisor, settings)
    stack.start_mlflow(supervisor, settings)
    names = supervisor.names
    for name in ("nats", "prefect"):
        if name in names:
            supervisor.wait_ready(name)
    stack.start_flows(supervisor, settings)
    for name in ("api", "mlflow"):
        if name in names:
            supervisor.wait_ready(name)


def prepare_stores(settings: Settings) -> None:
    """Bring the round store and the registry to their newest schema, in a process of its own.

    ``UnavailableError`` with that process's last line where it failed.
    """
    done = subprocess.run(
        [sys.executable, "-m", "api.cli.commands.prepare"], env=of_a_child(settings),
        capture_output=True, text=True, check=False, umask=UMASK,
    )
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise UnavailableError(lines[-1] if lines else "the stores could not be prepared")


def console_url(settings: Settings) -> str:
    """Address of the operator's console."""
    return f"{listening.api_url(settings)}/console"


def addresses(settings: Settings) -> str:
    """Where everything is, a line each."""
    secrets = ServerSecrets(settings.secrets_folder)
    prefect = "" if settings.prefect.api_url else f"  (sign in with what is in {secrets.prefect_file})"
    mlflow = "" if settings.mlflow.tracking_uri else f"  (user {USER}, password in {secrets.mlflow_file})"
    return "\n".join(
        (
            f"console            {console_url(settings)}  (sign in with a token: ballast token create)",
            f"API and its pages  {listening.api_url(settings)}",
            f"Prefect            {listening.prefect_url(settings)}{prefect}",
            f"MLflow             {listening.mlflow_url(settings)}{mlflow}",
            f"plant link (NATS)  {', '.join((*link_addresses(settings), *websocket_addresses(settings)))}",
            f"logs               {stack.log_folder(settings)}",
        )
    )


def addresses_as_values(settings: Settings) -> dict[str, object]:
    """Where everything is, for programs: addresses, and the files that hold what one signs in with (None: not ours)."""
    secrets = ServerSecrets(settings.secrets_folder)
    return {
        "console": console_url(settings), "api": listening.api_url(settings),
        "prefect": listening.prefect_url(settings),
        "prefect_secret_file": None if settings.prefect.api_url else str(secrets.prefect_file),
        "mlflow": listening.mlflow_url(settings),
        "mlflow_secret_file": None if settings.mlflow.tracking_uri else str(secrets.mlflow_file),
        "plant_link": [*link_addresses(settings), *websocket_addresses(settings)],
        "home": str(settings.home), "logs": str(stack.log_folder(settings)),
    }


def _say(text: str) -> None:
    print(text, flush=True)


def _say_aside(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
