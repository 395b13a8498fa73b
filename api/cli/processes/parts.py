"""The parts of the OEM's side by themselves, one a container: ``ballast up --only api``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import NoReturn

from api.cli.processes import child_environment, stack
from services.contracts.errors import InvalidInputError
from services.process.private_files import UMASK
from services.process.settings import Settings

Part = tuple[list[str], dict[str, str]]


def become(part: str, settings: Settings, listen: str | None = None) -> NoReturn:
    """Become one part of the OEM's side: this process goes on as that program.

    Prefect and MLflow may listen on another address than the loopback's, ``listen``, which is meant for a container
    whose ports are published on the host's loopback or on a network of our own; what they show is behind their secrets.

    :class:`InvalidInputError` where another part is to have such an address.
    """
    if listen and part not in ("prefect", "mlflow"):
        raise InvalidInputError(f"--listen goes with --only prefect or --only mlflow; for the {part} see the settings")
    command, told = PARTS[part](settings, listen)
    os.umask(UMASK)
    os.execve(command[0], command, {**os.environ, **told})


def _prefect_part(settings: Settings, listen: str | None) -> Part:
    child_environment.make_secrets(settings)
    return stack.prefect_command(settings, listen), child_environment.prefect_environment(settings)


def _mlflow_part(settings: Settings, listen: str | None) -> Part:
    if settings.mlflow.tracking_uri.startswith("http"):
        raise InvalidInputError("mlflow.tracking_uri is the address of a server, which has pages of its own")
    child_environment.make_secrets(settings)
    return stack.mlflow_command(settings, listen), child_environment.mlflow_environment(settings)


PARTS: Mapping[str, Callable[[Settings, str | None], Part]] = {
    "api": lambda settings, _: (stack.api_command(settings), child_environment.environment(settings)),
    "flows": lambda settings, _: (stack.flows_command(), child_environment.flows_environment(settings)),
    "prefect": _prefect_part,
    "mlflow": _mlflow_part,
}
"""Parts of the OEM's side that can run by themselves: command and environment of each."""
