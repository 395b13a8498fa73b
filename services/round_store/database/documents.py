"""Contracts and plain values in the form in which they are stored."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel

from services.contracts.documents import to_plain
from services.contracts.plain_words import cut, printable

MAX_TEXT = 1000
"""Characters that are kept of a sentence from outside, such as a site's reason for a refusal."""


def document(contract: BaseModel) -> dict[str, Any]:
    """Contract as a JSON document that both servers store exactly."""
    stored: dict[str, Any] = _cleaned(to_plain(contract))
    return stored


def metadata(values: dict[str, Any] | None) -> dict[str, Any] | None:
    """Plain metadata as a JSON document, equal to what is read back."""
    return None if values is None else json.loads(json.dumps(_cleaned(to_plain(values)), allow_nan=False))


def sentence(text: str, limit: int = MAX_TEXT) -> str:
    """Text from outside on one line, without characters that a database or a terminal cannot hold; cut at ``limit``."""
    return cut(printable(_clean(text)), limit)


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, dict):
        return {_clean(name): _cleaned(item) for name, item in value.items()}
    return [_cleaned(item) for item in value] if isinstance(value, list) else value


def _clean(text: str) -> str:
    """Text without what UTF-8 (lone surrogates) or PostgreSQL (the NUL character) cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd")
