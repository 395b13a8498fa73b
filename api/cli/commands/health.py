"""``ballast health``: whether one part of the OEM's side is at work, as a container's health check asks."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

from api.cli.common import add_home
from api.cli.processes import listening
from services.contracts.errors import UnavailableError
from services.process.command_line import add_json, tell
from services.process.process_lock import is_held
from services.process.settings import Settings, reached_at


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("part", choices=tuple(PROBES), help="the part that should run here")
    add_home(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Ask the part; 0 when it is at work, 1 with one line when not."""
    at_work = PROBES[arguments.part](Settings.load(arguments.home))
    if not at_work and not arguments.json:
        raise UnavailableError(f"{arguments.part} does not answer here")
    tell(arguments, {"part": arguments.part, "at_work": at_work}, f"{arguments.part} is at work")
    return 0 if at_work else 1


PROBES: Mapping[str, Callable[[Settings], bool]] = {
    "api": lambda settings: listening.of_home(
        settings, settings.api.port, listening.answers(f"{listening.api_url(settings)}/readyz")
    )(),
    "flows": lambda settings: is_held(settings.flows_lock),
    "nats": lambda settings: listening.of_home(
        settings, settings.nats.port, listening.greets(reached_at(settings.nats.host), settings.nats.port)
    )(),
    "prefect": lambda settings: listening.of_home(
        settings, settings.prefect.port, listening.answers(f"{settings.prefect.own_url}/api/health")
    )(),
    "mlflow": lambda settings: listening.of_home(
        settings, settings.mlflow.port, listening.answers(f"{settings.mlflow.own_url}/health")
    )(),
}
"""How one sees of each part that it is at work, where the settings have it listen."""
