"""Pages of a list: a cursor says after which row the next one begins, and the header ``Link`` has it (RFC 8288).

A cursor holds the sorting key of the last row that was shown, so rows that come and go meanwhile are neither shown
twice nor left out, as they would be with a number of rows to skip. It names its list by the path, for a key of one list
would often be one of another, too, and pass over rows there.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, TypeVar

from fastapi import Query, Request, Response

from services.contracts.base import in_utc
from services.contracts.errors import InvalidInputError
from services.round_store.database.queries import MAX_PAGE

Item = TypeVar("Item")
Key = tuple[Any, ...]
LONGEST: Final = 500  # characters of a cursor: a path and a sorting key in base 64
NO_CURSOR: Final = 'this is no cursor of this list: take it from rel="next" of the header Link'
Cursor = Annotated[
    str | None, Query(max_length=LONGEST, description='where the page begins, from rel="next" of the header `Link`')
]
WholeList = Annotated[int, Query(ge=1, le=MAX_PAGE, description="most rows of the answer")]


def read_cursor(path: str, text: str | None, *kinds: type) -> Key | None:
    """Sorting key in a cursor of the list at ``path``, of values of these kinds; ``InvalidInputError`` for another."""
    if text is None:
        return None
    try:
        padded = text + "=" * (-len(text) % 4)
        found = json.loads(base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True))
    except (ValueError, binascii.Error, UnicodeError):
        found = None
    if not isinstance(found, list) or found[:1] != [path]:
        raise InvalidInputError(NO_CURSOR)
    key = tuple(found[1:])
    if [type(each) for each in key] != list(kinds) or not all(map(_is_key, key)):
        raise InvalidInputError(NO_CURSOR)
    return key


def _is_key(value: Any) -> bool:
    """Whether a database can compare a column with a value: what a row of ours has in its sorting key, it can."""
    return value.isprintable() if isinstance(value, str) else not isinstance(value, int) or abs(value) < 2**63


def read_moment(text: str) -> datetime:
    """Moment in a cursor; ``InvalidInputError`` where it is none."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return in_utc(moment)
    except ValueError:
        pass
    raise InvalidInputError(NO_CURSOR)


def write_cursor(path: str, key: Sequence[Any]) -> str:
    """Cursor of a sorting key of the list at ``path``."""
    text = json.dumps([path, *key], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def say_next(request: Request, response: Response, limit: int, cursor: str) -> None:
    """Name the next page, which has rows, in the header ``Link``."""
    address = request.url.remove_query_params("offset").include_query_params(cursor=cursor, limit=limit)
    response.headers["Link"] = f'<{address.path}?{address.query}>; rel="next"'


def page_of(
    items: Sequence[Item], key: Callable[[Item], Key], kinds: tuple[type, ...], request: Request, response: Response,
    limit: int, cursor: str | None,
) -> tuple[Item, ...]:
    """One page of a list that is there whole, sorted by ``key``, upwards; says where the next one begins."""
    after = read_cursor(request.url.path, cursor, *kinds)
    rest = sorted((item for item in items if after is None or key(item) > after), key=key)
    shown = tuple(rest[:limit])
    if len(rest) > limit:
        say_next(request, response, limit, write_cursor(request.url.path, key(shown[-1])))
    return shown
