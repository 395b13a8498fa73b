"""Prefect's secrets, in a file that its processes read by themselves.

Prefect takes a setting from the environment or from a profile. What is in a process's environment, its user's every
other process can list, and Prefect hands it on to each flow run; what is in a profile is in a private file alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from services.bus.configuration import write_atomically
from services.contracts.errors import UnavailableError
from services.identity.server_secrets import ServerSecrets
from services.process.private_files import private_folder
from services.process.settings import Settings

PROFILE = "ballast"


def server_profile(settings: Settings) -> dict[str, str]:
    """Environment that names the profile of the Prefect server: what opens it, and its database where that is named."""
    values = {"PREFECT_SERVER_API_AUTH_STRING": ServerSecrets(settings.secrets_folder).prefect}
    if settings.prefect.database_url:
        values["PREFECT_SERVER_DATABASE_CONNECTION_URL"] = settings.prefect.database_url
    return _written(settings.home / "prefect-server.toml", values)


def client_profile(settings: Settings) -> dict[str, str]:
    """Environment that names the profile of the flows: what opens the Prefect server.

    Ours is opened by our secret. Another one is sent what ``prefect.auth_file`` holds, and nothing where it is not set.
    """
    if not settings.prefect.api_url:
        secret = ServerSecrets(settings.secrets_folder).prefect
    elif settings.prefect.auth_file is not None:
        secret = _read(settings.prefect.auth_file)
    else:
        return {}
    return _written(settings.home / "prefect-client.toml", {"PREFECT_API_AUTH_STRING": secret})


def _written(path: Path, values: Mapping[str, str]) -> dict[str, str]:
    private_folder(path.parent)
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())
    write_atomically(path, f'active = "{PROFILE}"\n\n[profiles.{PROFILE}]\n{lines}')
    return {"PREFECT_PROFILES_PATH": str(path.resolve()), "PREFECT_PROFILE": PROFILE}


def _read(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise UnavailableError(f"prefect.auth_file {path} cannot be read: {error}") from None
    if ":" not in text or len(text.splitlines()) > 1:
        raise UnavailableError(f"prefect.auth_file {path} must hold user:password in one line")
    return text
