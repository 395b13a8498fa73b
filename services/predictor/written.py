"""Answers as JSON, written column by column: no object for a sample, whatever their number.

Ten thousand diagnoses have a hundred thousand numbers. They are turned to text a column at a time and put together
once; ``Predictor.rows`` and ``Estimator.rows`` give the same answers as objects, which is quicker for a few.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import orjson

from models.basics import FloatArray
from services.predictor.sensors import Strongest

Part = bytes | Sequence[bytes]
"""A piece of every row's text: the same for all, or one each."""
NOTHING: Final = b"null"
FEW: Final = 50
"""Samples up to which objects are quicker than columns."""


def numbers(column: FloatArray) -> list[bytes]:
    """Each number of an array (n,) as JSON; null for what JSON has no number for."""
    return orjson.dumps(np.ascontiguousarray(column), option=orjson.OPT_SERIALIZE_NUMPY)[1:-1].split(b",")


def each(values: Iterable[object]) -> list[bytes]:
    """Each value as JSON."""
    return [orjson.dumps(value) for value in values]


def texts(values: Sequence[str]) -> list[bytes]:
    """Texts as JSON, each different one turned once."""
    turned = {value: orjson.dumps(value) for value in set(values)}
    return [turned[value] for value in values]


def named(names: Mapping[int, tuple[str, ...]], n: int) -> Part:
    """Lists of names of the rows that have any, ``[]`` for the others."""
    if not names:
        return b"[]"
    return [orjson.dumps(names[row]) if row in names else b"[]" for row in range(n)]


def sensors(found: Strongest) -> list[Part]:
    """Pieces of the list of contributing sensors."""
    parts: list[Part] = [b"["]
    pushes = found.contributions != 0.0
    heads = [b'{"feature":' + orjson.dumps(name) + b',"value":' for name, _ in found.features]
    units = [b',"unit":' + orjson.dumps(unit) + b',"contribution":' for _, unit in found.features]
    for place in range(found.order.shape[1]):
        columns, there = found.order[:, place].tolist(), pushes[:, place]
        pieces: list[Sequence[bytes]] = [
            [heads[column] for column in columns], numbers(found.values[:, place]),
            [units[column] for column in columns], numbers(found.contributions[:, place]),
        ]
        if there.all():
            parts += [b"," if place else b"", *pieces, b"}"]
            continue
        # Sorted by size: a row has no sensor after its first that does not push.
        kept = there.tolist()
        ends: list[Sequence[bytes]] = [[b"," if place else b""] * len(kept), *pieces, [b"}"] * len(kept)]
        parts += [[text if on else b"" for text, on in zip(piece, kept, strict=True)] for piece in ends]
    return [*parts, b"]"]


def fields(**pieces: Sequence[Part]) -> list[Part]:
    """Pieces of an object with these members, each of which is made of pieces."""
    parts: list[Part] = []
    for place, (name, piece) in enumerate(pieces.items()):
        parts += [(b"," if place else b"{") + orjson.dumps(name) + b":", *piece]
    return [*parts, b"}"]


def rows(parts: Sequence[Part], n: int) -> list[bytes]:
    """Text of each of n rows."""
    merged: list[Part] = []
    for part in parts:
        if isinstance(part, bytes) and merged and isinstance(merged[-1], bytes):
            merged[-1] += part
        else:
            merged.append(part)
    columns = [[part] * n if isinstance(part, bytes) else part for part in merged]
    return [b"".join(pieces) for pieces in zip(*columns, strict=True)]
