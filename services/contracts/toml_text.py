"""Contracts as TOML, such as an operator would write them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(contract: BaseModel) -> str:
    """Text that reads back as the same contract, tables last. TOML has no null: what is None is left out."""
    return "\n".join(_lines((), contract.model_dump())).strip() + "\n"


def quoted(text: str) -> str:
    """A text as TOML has it, on one line; what does not print is escaped."""
    return "".join(each if each.isprintable() else _escaped(each) for each in json.dumps(text, ensure_ascii=False))


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _lines(path: tuple[str, ...], table: Mapping[str, Any]) -> Iterator[str]:
    values = {name: value for name, value in table.items() if value is not None and value != {}}
    below = [name for name, value in values.items() if isinstance(value, Mapping) or _is_tables(value)]
    for name, value in values.items():
        if name not in below:
            yield f"{_key(name)} = {_value(value)}"
    for name in below:
        inner = (*path, name)
        for each in values[name] if _is_tables(values[name]) else (values[name],):
            heading = ".".join(map(_key, inner))
            yield ""
            yield f"[[{heading}]]" if _is_tables(values[name]) else f"[{heading}]"
            yield from _lines(inner, each)


def _is_tables(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) > 0 and all(isinstance(each, Mapping) for each in value)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else quoted(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)  # inf, -inf and nan are TOML's words too
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(item) for item in value)}]"
    if isinstance(value, Mapping):  # beside texts in a list: a table on one line
        pairs = (f"{_key(name)} = {_value(each)}" for name, each in value.items() if each is not None)
        return f"{{ {', '.join(pairs)} }}"
    return quoted(str(value))
