"""Entity tags: a change says which state it was made from, so that it overwrites nobody else's (RFC 9110, 13.1.1)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from typing import Annotated

from fastapi import Header
from pydantic import BaseModel

from services.contracts.documents import to_plain
from services.contracts.errors import ConflictError, InvalidInputError

_DIGITS = 32  # hexadecimal: 128 bits, so that no two states of a thing share a tag
_TAG = r'(W/)?("[\x21\x23-\x7e\x80-\xff]*")'
_TAGS = re.compile(rf"[\s,]*{_TAG}(\s*,[\s,]*{_TAG})*[\s,]*")
IfMatch = Annotated[str | None, Header(description='the entity tag of what is changed, as "ETag" gave it, or *')]


def etag_of(record: BaseModel) -> str:
    """Strong entity tag of a record."""
    text = json.dumps(to_plain(record), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]}"'


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
    anything = if_match.strip() == "*"
    if not anything and _TAGS.fullmatch(if_match) is None:
        raise InvalidInputError('If-Match holds entity tags in quotation marks, such as "1a2b", or * alone')
    wanted = [(bool(weak), tag) for weak, tag in re.findall(_TAG, if_match)]

    def check(record: BaseModel) -> None:
        now = etag_of(record)
        if anything or (False, now) in wanted:
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
