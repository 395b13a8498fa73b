"""Contracts and plain values in the form in which they are stored."""

from __future__ import annotations

import json
import math
from typing import Any

from pydantic import BaseModel

MAX_TEXT = 1000
"""Characters that are kept of a sentence from outside, such as a site's reason for a refusal."""


def storable(value: Any) -> Any:
    """JSON value that both servers store exactly.

    A float that JSON has no number for becomes the string that pydantic reads back as that float; characters that
    UTF-8 or PostgreSQL cannot hold become U+FFFD.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, dict):
        return {_clean(str(key)): storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    return value


def document(contract: BaseModel) -> dict[str, Any]:
    """Contract as a JSON document."""
    stored: dict[str, Any] = storable(contract.model_dump(mode="json"))
    return stored


def metadata(values: dict[str, Any] | None) -> dict[str, Any] | None:
    """Plain metadata as a JSON document, equal to what is read back."""
    return None if values is None else json.loads(json.dumps(storable(values), allow_nan=False))


def sentence(text: str, limit: int = MAX_TEXT) -> str:
    """Text from outside, without characters that a database cannot hold, and cut at ``limit``."""
    cleaned = _clean(text)
    return cleaned if len(cleaned) <= limit else cleaned[: limit - 1] + "…"


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd")
