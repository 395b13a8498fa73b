"""Contracts read from files, and what does not fit in them said in words of the files that people write."""

from __future__ import annotations

import tomllib
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from services.contracts.base import (
    CLASS_PATTERN,
    COLUMN_PATTERN,
    RUN_PATTERN,
    SHA256_PATTERN,
    SLUG_PATTERN,
    TITLE_PATTERN,
    UNIT_PATTERN,
    VERSION_PATTERN,
    Contract,
    place_of,
)
from services.contracts.errors import InvalidInputError
from services.contracts.unknown_keys import unknown_key

AnyContract = TypeVar("AnyContract", bound=Contract)


def read_toml(
    kind: type[AnyContract], path: Path, what: str, failure: type[InvalidInputError] = InvalidInputError
) -> AnyContract:
    """Contract in a TOML file; raise ``failure`` with one line for each thing that does not fit."""
    try:
        return kind.model_validate(toml_values(path))
    except FileNotFoundError:
        raise failure(f"no {what} file at {path}") from None
    except OSError as error:
        raise failure(f"the {what} file {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise failure(f"{path} is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise failure(f"{path} is not TOML: {error}") from None
    except ValidationError as error:
        raise failure(f"{path}: {explain(error, kind)}") from None


def toml_values(path: Path) -> dict[str, Any]:
    """What a TOML file says; with the mark in front that some editors write (UTF-8 with BOM), too.

    Raises what reading and decoding raise; a file too deep to be read is a ``TOMLDecodeError``.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except RecursionError:
        raise tomllib.TOMLDecodeError("its values lie too deep in one another") from None


def read_contract(kind: type[AnyContract], path: Path, what: str) -> AnyContract:
    """Contract in a JSON file where its name ends so, else in a TOML file; ``InvalidInputError`` as ``read_toml``."""
    if path.suffix != ".json":
        return read_toml(kind, path, what)
    try:
        return kind.model_validate_json(path.read_bytes().removeprefix(BOM_UTF8))
    except FileNotFoundError:
        raise InvalidInputError(f"no {what} file at {path}") from None
    except OSError as error:
        raise InvalidInputError(f"the {what} file {path} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        raise InvalidInputError(f"{path}: {explain(error, kind)}") from None


_OTHER_KINDS = {
    "tuple_type": "give a list, in brackets", "list_type": "give a list, in brackets",
    "dict_type": "give a table of keys and values", "model_type": "give a table of keys and values",
    "model_attributes_type": "give a table of keys and values", "path_type": "give a path, in quotes",
}
"""What to give where a value of another kind stands, in the words of the files that people write."""
_BEGINS = "a name has 1 to 63 lower-case letters, digits"
_PATTERN_WORDS = {
    SLUG_PATTERN: "a name has 1 to 40 lower-case letters, digits and dashes, and no dash at an end",
    COLUMN_PATTERN: f"{_BEGINS} and underscores, a letter first",
    CLASS_PATTERN: f"{_BEGINS}, underscores, dashes and plus signs, a letter first",
    RUN_PATTERN: "a run's id has 32 digits from 0 to 9 and a to f",
    SHA256_PATTERN: "give 64 digits from 0 to 9 and a to f, without colons",
    VERSION_PATTERN: "a version's number or alias has 1 to 60 letters, digits, points, dashes and underscores",
    TITLE_PATTERN: "give a name on one line, without control characters",
    UNIT_PATTERN: "give a unit on one line, without control characters",
}
"""What an operator reads where a name does not fit its pattern."""
_MOST_FINDINGS = 5  # who mends five sees the next ones


def explain(error: ValidationError, kind: type[BaseModel] | None = None) -> str:
    """Pydantic's findings on one line: where, what, without the values (they may be private).

    With the ``kind`` that did not fit, a key that it does not know comes with the one that was meant.
    """
    return on_one_line([what for _, what in findings(error, kind)])


def findings(
    error: ValidationError, kind: type[BaseModel] | None = None
) -> list[tuple[tuple[int | str, ...], str]]:
    """Place of each finding, and what :func:`explain` says of it, the place in front."""
    found, items = [], error.errors(include_url=False, include_input=False)
    for item in items:
        if item["type"] == "too_short" and any(_is_below(other["loc"], item["loc"]) for other in items):
            continue  # pydantic does not count the items that do not fit
        place = place_of(item["loc"])
        where = ".".join(str(part) for part in place)
        message = _OTHER_KINDS.get(item["type"]) or in_plain_words(item)
        if kind is not None and item["type"] == "extra_forbidden":
            message = unknown_key(kind, item["loc"])
        found.append((place, f"{where}: {message}" if where else message))
    return found


def in_plain_words(item: Mapping[str, Any]) -> str:
    """What pydantic says of a value, without a pattern that nobody reads and without the names of Python's types."""
    if words := _PATTERN_WORDS.get(item.get("ctx", {}).get("pattern", "")):
        return words
    message = str(item["msg"]).removeprefix("Value error, ")
    if item["type"] in ("too_short", "too_long"):
        return f"Input {message.partition(' ')[2]}".replace(" after validation", "")
    return message


def _is_below(place: tuple[int | str, ...], upper: tuple[int | str, ...]) -> bool:
    return len(place) > len(upper) and place[: len(upper)] == upper


def on_one_line(found: Sequence[str]) -> str:
    """The first findings, and how many more there are."""
    more = [f"and {len(found) - _MOST_FINDINGS} more"] if len(found) > _MOST_FINDINGS else []
    return "; ".join([*found[:_MOST_FINDINGS], *more])
