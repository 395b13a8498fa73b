"""Settings that name no database and no store outside of the home folder."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from services.contracts.errors import ConflictError
from services.process.environment import ENVIRONMENT, IN_A_FILE

ELSEWHERE: Final = ("database_url", "tracking_uri", "artifact_root")
"""Settings that name a database or store outside of the home folder."""
_NAMED: Final = re.compile(
    rf"""(?P<before>,\s*)?(?:\b[\w-]+\s*\.\s*)?["']?\b(?:{'|'.join(ELSEWHERE)})\b["']?\s*=\s*"""
    r"""("[^"\n]*"|'[^'\n]*')(?P<after>\s*,)?"""
)
"""One of them with its text, also after its table's name (``mlflow.tracking_uri``) and in a table on one line."""


def without_elsewhere(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment without what names a database or store outside of the home folder, also by a file."""
    left = {variable for variable, path in ENVIRONMENT.items() if path[-1] in ELSEWHERE}
    return {name: value for name, value in environment.items() if name.removesuffix(IN_A_FILE) not in left}


def keep_inside(file: Path) -> None:
    """Take out of ``ballast.toml`` what names a database or store elsewhere; ``ConflictError`` where that cannot be."""
    if not file.exists():
        return
    kept = [_without(line) for line in file.read_text(encoding="utf-8-sig").splitlines()]
    text = "\n".join(line for line in kept if line is not None) + "\n"
    try:
        left = _named(tomllib.loads(text))
    except tomllib.TOMLDecodeError:
        left = ["a database or store"]
    if left:
        raise ConflictError(
            f"the backup's {file.name} names {', '.join(left)} in a form that cannot be taken out of it; restore where "
            "these are reached and empty, without --self-contained"
        )
    file.write_text(text, encoding="utf-8")


def _without(line: str) -> str | None:
    """Line without such settings; None where nothing else stood on it."""
    left = _NAMED.sub(lambda found: "," if found["before"] and found["after"] else "", line)
    return None if left != line and not left.split("#")[0].strip() else left


def _named(values: dict[str, Any]) -> list[str]:
    tables = (values, *(value for value in values.values() if isinstance(value, dict)))
    return [name for table in tables for name in ELSEWHERE if name in table]
