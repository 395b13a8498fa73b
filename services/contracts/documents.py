"""Contracts as plain JSON and back, exactly: numbers keep every bit, infinities and NaN travel as words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from pydantic import BaseModel


def to_plain(value: object) -> Any:
    """Value as what JSON knows: mappings, lists, texts, numbers, booleans and null.

    Floats stay floats, so ``json.dumps`` writes their shortest exact form; the ones that JSON has no number for become
    ``"Infinity"``, ``"-Infinity"`` and ``"NaN"``, which pydantic reads back into a float field. Arrays become nested
    lists, dates ISO 8601 texts. ``TypeError`` for a value that has no such form.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _word(value)
    if isinstance(value, BaseModel):
        return {name: to_plain(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        return {str(name): to_plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, datetime | date):
        return value.isoformat()
    import numpy as np  # what is told seldom has arrays, and a short command does without

    if isinstance(value, np.ndarray | np.generic):
        return to_plain(value.tolist())
    raise TypeError(f"a value of type {type(value).__name__} has no JSON form")


def _word(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
