"""Entity tags: a change says which state it was made from, so that it overwrites nobody else's (RFC 9110, 13.1.1)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Annotated

from fastapi import Header
from pydantic import BaseModel

from services.contracts.documents import to_plain
from services.contracts.errors import ConflictError

_DIGITS = 32  # hexadecimal: 128 bits, so that no two states of a thing share a tag
IfMatch = Annotated[str | None, Header(description='the entity tag of what is changed, as "ETag" gave it, or *')]


def etag_of(record: BaseModel) -> str:
    """Strong entity tag of a record."""
    text = json.dumps(to_plain(record), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]}"'


def expecting(if_match: str | None) -> Callable[[BaseModel], None]:
    """Return what checks a stored record against the header ``If-Match``; call it in the change's transaction.

    ``ConflictError`` (``precondition_required``) without the header; what is returned raises it
    (``precondition_failed``) where the record is in another state.
    """
    if if_match is None:
        raise ConflictError(
            "send the header If-Match with the entity tag (ETag) of what you change, or * for whatever is there",
            code="precondition_required",
        )
    wanted = [tag.strip() for tag in if_match.split(",")]

    def check(record: BaseModel) -> None:
        if wanted != ["*"] and etag_of(record) not in wanted:
            raise ConflictError(
                "somebody has changed this meanwhile; read it again and make your change to what is there now",
                code="precondition_failed",
            )

    return check
