"""Which key was meant where a contract does not know one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel

_LIKE = 0.7
"""How alike two words must be (0 to 1): a letter or two off, not another word of the same length."""
_DEPTH = 3
"""How deep another place of a key is looked for; no contract goes deeper."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was likely meant by one that is none of them; None where none is near."""
    return next(iter(get_close_matches(word, list(known), n=1, cutoff=_LIKE)), None)


def unknown_key(kind: type[BaseModel], where: Sequence[int | str]) -> str:
    """What to say of a key that ``kind`` does not know at ``where``, the path with the key itself last."""
    key = str(where[-1])
    known = _known(kind, where[:-1])
    if near := nearest(key, known):
        return f"there is no such key; did you mean {near}?"
    elsewhere = [path for path in _paths(kind, _DEPTH) if path.split(".")[-1] == key]
    if elsewhere:
        return f"there is no such key here; did you mean {elsewhere[0]}?"
    return f"there is no such key; known here: {', '.join(known)}" if known else "there is no such key"


def _known(kind: type[BaseModel], where: Sequence[int | str]) -> list[str]:
    """Keys of the contracts at a path; several where one of a union stands there, told apart by a word in the path."""
    places: list[type[BaseModel]] = [kind]
    for part in where:
        inner = [
            found for place in places for name, field in place.model_fields.items() if name == part
            for found in _contracts(field.annotation)
        ]
        # An index, a site's name, or the word that tells the members of a union apart: the contract stays.
        places = inner or [place for place in places if part in _words(place)] or places
    return list(dict.fromkeys(name for place in places for name in place.model_fields))


def _words(kind: type[BaseModel]) -> set[Any]:
    """Words that a contract's fields can only be, such as the kind of a data source."""
    return {word for field in kind.model_fields.values() for word in get_args(field.annotation)}


def _contracts(annotation: Any) -> list[type[BaseModel]]:
    """Contracts inside of a type such as ``tuple[A, ...]``, ``dict[str, A]`` or ``A | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for inner in get_args(annotation) for found in _contracts(inner)]


def _paths(kind: type[BaseModel], depth: int) -> Iterator[str]:
    for name, field in kind.model_fields.items():
        yield name
        for inner in _contracts(field.annotation) if depth > 1 else ():
            yield from (f"{name}.{path}" for path in _paths(inner, depth - 1))
