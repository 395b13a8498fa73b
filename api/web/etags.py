"""Entity tags: a change says which state it was made from, so that it overwrites nobody else's (RFC 9110, 13.1.1)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from typing import Annotated, Any, Final

from fastapi import Header
from pydantic import BaseModel

from services.contracts.documents import to_plain
from services.contracts.errors import ConflictError, InvalidInputError

_DIGITS = 32  # hexadecimal: 128 bits, so that no two states of a thing share a tag
_TAG = r'(W/)?("[\x21\x23-\x7e\x80-\xff]*")'
_TAGS = re.compile(rf"[\s,]*{_TAG}(\s*,[\s,]*{_TAG})*[\s,]*")
IfMatch = Annotated[str | None, Header(description='the entity tag of what is changed, as "ETag" gave it, or *')]
IfNoneMatch = Annotated[str | None, Header(description='entity tags of what you have, as "ETag" gave them, or *')]
UNCHANGED: Final[dict[int | str, dict[str, Any]]] = {
    304: {"description": "it is what you have already: one of the tags in `If-None-Match` is its tag"}
}
"""Documented answer of a GET that gives a tag."""


def etag_of(record: BaseModel) -> str:
    """Strong entity tag of a record."""
    text = json.dumps(to_plain(record), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]}"'


def has_already(if_none_match: str | None, tag: str) -> bool:
    """Whether the caller has what bears the tag, by the header ``If-None-Match`` (RFC 9110, 13.1.2).

    Tags are compared weakly: what a proxy between us made of it, such as its compressed form, is the same to read.
    ``InvalidInputError`` where the header is no list of tags.
    """
    if if_none_match is None:
        return False
    tags = _tags("If-None-Match", if_none_match)
    return tags is None or any(each == tag for _, each in tags)


def _tags(header: str, text: str) -> list[tuple[bool, str]] | None:
    """Tags of a header, each with whether it is weak; None for ``*``, whatever is there."""
    if text.strip() == "*":
        return None
    if _TAGS.fullmatch(text) is None:
        raise InvalidInputError(f'{header} holds entity tags in quotation marks, such as "1a2b", or * alone')
    return [(bool(weak), tag) for weak, tag in re.findall(_TAG, text)]


def expecting(if_match: str | None) -> Callable[[BaseModel], None]:
    """Return what checks a stored record against the header ``If-Match``; call it in the change's transaction.

    ``ConflictError`` (``precondition_required``) without the header, ``InvalidInputError`` for one that is no list of
    tags; what is returned raises the former (``precondition_failed``) where the record is in another state. Tags are
    compared strongly, as the RFC asks, so a weak one never fits; where it is ours but for that, the answer says so.
    """
    if if_match is None:
        raise ConflictError(
            "send the header If-Match with the entity tag (ETag) of what you change, or * for whatever is there",
            code="precondition_required",
        )
    wanted = _tags("If-Match", if_match)

    def check(record: BaseModel) -> None:
        now = etag_of(record)
        if wanted is None or (False, now) in wanted:
            return
        if (True, now) in wanted:
            raise ConflictError(
                "a weak entity tag (W/) changes nothing: what made it weak is between us, such as a proxy that "
                "compresses answers; send the tag without W/",
                code="precondition_failed",
            )
        raise ConflictError(
            "somebody has changed this meanwhile; read it again and make your change to what is there now",
            code="precondition_failed",
        )

    return check
