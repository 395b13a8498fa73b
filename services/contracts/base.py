"""The base of every contract: frozen, and strict about what it does not know."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Self

from pydantic import AfterValidator, AwareDatetime, ConfigDict, StringConstraints

from services.contracts.true_numbers import TrueNumbers

SLUG_PATTERN = r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$"
"""What a name looks like."""
TITLE_PATTERN = r"^[^\x00-\x1f\x7f]+$"
"""What people call something, such as a token: a line of text."""
COLUMN_PATTERN, CLASS_PATTERN = r"^[a-z][a-z0-9_]{0,62}$", r"^[a-z][a-z0-9_+-]{0,62}$"
"""What the names of sensors and targets look like, and those of fault classes."""
Slug = Annotated[str, StringConstraints(pattern=SLUG_PATTERN)]
"""Lower-case name of a site, plan, asset type or method; safe in a NATS subject, a path and a URL."""

RUN_PATTERN, VERSION_PATTERN = r"^[0-9a-f]{32}$", r"^[A-Za-z0-9._-]{1,60}$"
"""What a run's id looks like, and the number or alias of a version."""
SHA256_PATTERN = r"^[0-9a-f]{64}$"
"""What a SHA-256 digest looks like."""
UNIT_PATTERN = r"^[^\x00-\x1f\x7f]*$"
"""What the unit of a reading looks like: it stands on pages, in files and in exported code."""
RunId = Annotated[str, StringConstraints(pattern=RUN_PATTERN)]
"""A run's id: 32 hexadecimal digits."""


WORD, TABLE = "(word)", "(table)"
"""Tags of a value that is a word or a table; where it does not fit, they are no part of its place."""


def in_utc(moment: datetime) -> datetime:
    """The same moment in UTC; ``ValueError`` for one that UTC has in no year from 1 to 9999."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("this moment is in no year from 1 to 9999 in UTC") from None


Moment = Annotated[AwareDatetime, AfterValidator(in_utc)]
"""A moment that somebody gives, with its zone; held in UTC."""


def place_of(parts: Sequence[int | str]) -> tuple[int | str, ...]:
    """Where a finding is, as whoever wrote the value knows it: without the tags that tell kinds of values apart.

    pydantic's own tag of one of several words has all of them, as in ``literal['a','b']``.
    """
    return tuple(part for part in parts if part not in (WORD, TABLE) and not str(part).startswith("literal["))


class Contract(TrueNumbers):
    """Frozen pydantic model that forbids unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    @classmethod
    def of_record(cls, record: object, **more: object) -> Self:
        """Take from a record what this contract is made of, by name; ``more`` are the fields that it has not.

        ``AttributeError`` where the record lacks a field that ``more`` does not give, ``ValidationError`` where a value
        does not fit.
        """
        shared = {name: getattr(record, name) for name in cls.model_fields if name not in more}
        return cls.model_validate(shared | more)
