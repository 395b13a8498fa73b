"""A key that stands twice in one object of a request: readers of JSON keep the last value, here it is refused.

Which key it is takes a slower reading, so that is done only where there may be one: a text has a colon for each of its
members as they were written, and maybe more in its strings. As many colons as the members that were read: no key was
there twice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from services.contracts.errors import InvalidInputError
from services.contracts.repeated_keys import RepeatedKeyError, said_twice, without_repeats


def may_repeat(text: bytes, members: int) -> bool:
    """Whether a JSON text may have a key twice, of which ``members`` members of objects were read."""
    return text.count(b":") != members


def members_of(value: object) -> int:
    """Members of an object, of the objects in it, and of those in its lists; lists of numbers are not gone through."""
    if isinstance(value, Mapping):
        return len(value) + sum(members_of(each) for each in value.values() if isinstance(each, Mapping | list))
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        return sum(map(members_of, value))
    return 0


def repeated_key(text: bytes) -> str | None:
    """First key that an object of a JSON text has twice; None where there is none, and where it is no JSON."""
    try:
        json.loads(text, object_pairs_hook=without_repeats)
    except RepeatedKeyError as error:
        return str(error)
    except (ValueError, RecursionError):
        return None
    return None


def refuse_repeated(text: bytes) -> None:
    """Raise ``InvalidInputError`` with the key that an object of a body has twice."""
    key = repeated_key(text)
    if key is not None:
        raise InvalidInputError(f"body: {said_twice(key)}")
