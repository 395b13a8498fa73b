"""Settings that the environment gives: which variable says which setting, and whose fault it is where one does not fit.

What is secret is better named than said: ``BALLAST_DATABASE_URL_FILE`` and the like name a file that holds the value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from services.contracts.errors import InvalidInputError
from services.contracts.reading import findings, on_one_line
from services.process.tracing import ENDPOINT_VARIABLE

SettingPath = tuple[str, ...]
"""Where a setting stands in the file: its section, if it has one, and its name."""
ENVIRONMENT: dict[str, SettingPath] = {
    "BALLAST_DATABASE_URL": ("database_url",),
    "BALLAST_NATS_SERVERS": ("nats", "servers"),
    "BALLAST_NATS_PLANT_SERVERS": ("nats", "plant_servers"),
    "BALLAST_NATS_PORT": ("nats", "port"),
    "BALLAST_NATS_WEBSOCKET_PORT": ("nats", "websocket_port"),
    "BALLAST_NATS_SEED_FILE": ("nats", "seed_file"),
    "BALLAST_NATS_CA_FILE": ("nats", "ca_file"),
    "BALLAST_PREFECT_API_URL": ("prefect", "api_url"),
    "BALLAST_PREFECT_PORT": ("prefect", "port"),
    "BALLAST_PREFECT_AUTH_FILE": ("prefect", "auth_file"),
    "BALLAST_PREFECT_DATABASE_URL": ("prefect", "database_url"),
    "BALLAST_PREFECT_RUNS_AT_ONCE": ("prefect", "runs_at_once"),
    "BALLAST_MLFLOW_TRACKING_URI": ("mlflow", "tracking_uri"),
    "BALLAST_MLFLOW_ARTIFACT_ROOT": ("mlflow", "artifact_root"),
    "BALLAST_MLFLOW_PORT": ("mlflow", "port"),
    "BALLAST_API_HOST": ("api", "host"),
    "BALLAST_API_PORT": ("api", "port"),
    "BALLAST_API_HOST_NAMES": ("api", "host_names"),
    "BALLAST_API_CERTIFICATE": ("api", "certificate"),
    "BALLAST_API_KEY": ("api", "key"),
    "BALLAST_API_ABSTAIN_BELOW_RADIUS": ("api", "abstain_below_radius"),
    ENDPOINT_VARIABLE: ("tracing", "endpoint"),
    "BALLAST_LOG_FORMAT": ("logging", "format"),
    "BALLAST_LOG_LEVEL": ("logging", "level"),
}
IN_A_FILE = "_FILE"
"""Ending of a variable that names a file with the value, so that no listing of environments shows it."""
_LISTS = frozenset({"servers", "plant_servers", "host_names"})
"""Settings of which a variable gives several, with commas between them."""


def add_environment(values: dict[str, Any], environment: Mapping[str, str]) -> dict[SettingPath, str]:
    """Put into ``values`` what the environment says; the variable that said each, by the setting's place.

    ``InvalidInputError`` where a variable names a file that cannot be read or is empty, or stands beside one that does.
    """
    said = {}
    for variable, path in ENVIRONMENT.items():
        text = _said(variable, environment)
        if text and _put(values, path, text):
            said[path] = variable if environment.get(variable) else variable + IN_A_FILE
    return said


def explain_settings(
    error: ValidationError, kind: type[BaseModel], file: Path, said: Mapping[SettingPath, str]
) -> str:
    """What does not fit, on one line: each finding behind the file, or the variable, that says the value."""
    by_source: dict[str, list[str]] = {}
    for place, what in findings(error, kind):
        by_source.setdefault(_source(place, file, said), []).append(what)
    return "; ".join(f"{source}: {on_one_line(found)}" for source, found in by_source.items())


def _source(place: Sequence[int | str], file: Path, said: Mapping[SettingPath, str]) -> str:
    """Who says what stands at a place: a variable, the file, or of a whole section both."""
    for path, variable in said.items():
        if tuple(place[: len(path)]) == path:
            return variable
    inside = [variable for path, variable in said.items() if place and path[: len(place)] == tuple(place)]
    return " and ".join([*([str(file)] if file.exists() or not inside else []), *inside])


def _said(variable: str, environment: Mapping[str, str]) -> str | None:
    """What the environment says for a variable, itself or by the name of a file; ``InvalidInputError``."""
    text, file = environment.get(variable), environment.get(variable + IN_A_FILE)
    if not file:
        return text
    if text:
        raise InvalidInputError(f"give {variable} or {variable + IN_A_FILE}, not both")
    try:
        found = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{variable + IN_A_FILE} names {file}, which cannot be read: {error}") from None
    if not found:
        raise InvalidInputError(f"{variable + IN_A_FILE} names {file}, which is empty")
    return found


def _put(values: dict[str, Any], path: SettingPath, text: str) -> bool:
    """Whether the value could be put there: where the file has something else than a section, it is refused for it."""
    for part in path[:-1]:
        inner = values.setdefault(part, {})
        if not isinstance(inner, dict):
            return False
        values = inner
    values[path[-1]] = _named(text) or text if path[-1] in _LISTS else text
    return True


def _named(text: str) -> list[str]:
    """What a text names with commas between; blanks around a name are none of it, as no certificate bears them."""
    return [name for name in map(str.strip, text.split(",")) if name]
