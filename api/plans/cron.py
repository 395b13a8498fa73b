"""Five-field cron schedules: a strict reading, so that what is accepted means the same to everybody."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Final
from zoneinfo import ZoneInfo

from services.contracts.errors import InvalidInputError

_MONTHS: Final = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_WEEKDAYS: Final = "sun mon tue wed thu fri sat".split()
_LONGEST: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)  # days of each month, in a leap year
_LOOK_AHEAD_DAYS: Final = 5 * 366  # 29 February comes within them, but for the turn of some centuries
SKIPPED_COMES_LATER: Final = sys.version_info >= (3, 13)
"""Prefect reckons with another library from Python 3.13 on."""
_TERM: Final = re.compile(r"(?P<first>\*|\w+)(?:-(?P<last>\w+))?(?:/(?P<step>[0-9]{1,9}))?", re.ASCII)
_NUMBER: Final = re.compile("[0-9]{1,9}")
"""What ``int`` takes: of thousands of digits it makes no number."""


@dataclass(frozen=True)
class _Field:
    name: str
    low: int
    high: int
    words: tuple[str, ...] = ()
    again: int | None = None  # another number for the lowest, beyond the highest

    def read(self, text: str) -> frozenset[int]:
        """Numbers that a field's text stands for."""
        return frozenset(number for term in text.split(",") for number in self._term(term))

    def check(self, text: str) -> None:
        """Refuse a range that begins where it ends, such as ``3-3`` or ``59/5``: Prefect takes it for all numbers."""
        for term in text.split(","):
            found = _TERM.fullmatch(term)
            if found is None or found["first"] == "*" or not (found["last"] or found["step"]):
                continue
            first, last = self._number(found["first"]), found["last"]
            if first >= (self._number(last) if last else self.high):
                raise InvalidInputError(
                    f"cron: {term[:40]!r} is a range of one {self.name}: write {found['first']}", code="bad_cron"
                )

    def _term(self, term: str) -> range:
        found = _TERM.fullmatch(term)
        if found is None:
            raise self._error(term)
        first, last, step = found["first"], found["last"], int(found["step"] or 1)
        start, end = self.low, self.high
        if first != "*" or last is not None:
            start = self._number(first)
            end = self._number(last) if last else (self.high if found["step"] else start)
            if start == self.again and last is None:
                start, end = self.low, end if found["step"] else self.low
            if (last or found["step"]) and start == end:
                start, end = self.low, self.high
        if step < 1 or end < start:
            raise self._error(term)
        return range(start, end + 1, step)

    def _number(self, text: str) -> int:
        if text.lower() in self.words:
            return self.low + self.words.index(text.lower())
        if not (_NUMBER.fullmatch(text) and self.low <= int(text) <= self._highest):
            raise self._error(text)
        return int(text)

    @property
    def _highest(self) -> int:
        return self.high if self.again is None else self.again

    def _error(self, text: str) -> InvalidInputError:
        known = f"{self.low} to {self._highest}"
        return InvalidInputError(f"cron: {text[:40]!r} is no {self.name} ({known})", code="bad_cron")


_FIELDS: Final = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, tuple(_MONTHS)),
    _Field("day of the week", 0, 6, tuple(_WEEKDAYS), again=7),
)


def check_cron(text: str) -> None:
    """Raise :class:`InvalidInputError` unless a text is a cron schedule that comes up some day.

    Five fields: minute, hour, day of the month, month, day of the week (0 and 7 are Sunday), each a list of ``*``,
    numbers, ranges ``a-b`` and steps ``/n``; months and weekdays also by their English three-letter names.
    """
    parts, (_, _, days, months, _) = _read(text)
    for field, part in zip(_FIELDS, parts, strict=True):
        field.check(part)
    if parts[4].startswith("*") and min(days) > max(_LONGEST[month - 1] for month in months):
        raise InvalidInputError("cron: this day of the month is in none of these months", code="bad_cron")


def next_times(text: str, timezone: str, after: datetime, count: int) -> list[datetime]:
    """The next ``count`` moments of a schedule later than ``after``, in UTC; fewer where five years hold fewer.

    Where both days are restricted, either is enough, as cron has it; ``*/2`` restricts too. A local time that the
    clocks skip comes as Prefect has it, which starts the runs: as much earlier as they skip (2:30 at 1:30, at an hour's
    change), from Python 3.13 on as much later (3:30); one that they show twice comes the first time.
    """
    parts, (minutes, hours, days, months, weekdays) = _read(text)
    weekdays = frozenset(day % 7 for day in weekdays)
    either = not (_is_open(parts[2], len(days) == 31, parts[4]) or _is_open(parts[4], len(weekdays) == 7, parts[2]))
    zone, found = ZoneInfo(timezone), list[datetime]()
    first = after.astimezone(zone).date()
    for offset in range(_LOOK_AHEAD_DAYS):
        day = first + timedelta(days=offset)
        fits = (day.day in days, day.isoweekday() % 7 in weekdays)
        if day.month not in months or not (any(fits) if either else all(fits)):
            continue
        times = product(sorted(hours), sorted(minutes))
        moments = {_moment(datetime(day.year, day.month, day.day, *time), zone) for time in times}
        for moment in sorted(moments):
            if moment > max([after, *found[-1:]]):
                found.append(moment)
            if len(found) >= count:
                return found
    return found


def _read(text: str) -> tuple[list[str], list[frozenset[int]]]:
    """The five fields of a schedule, and what numbers each stands for, as Prefect reads them, which starts the runs."""
    parts = text.split()
    if len(parts) != len(_FIELDS):
        raise InvalidInputError(
            f"cron: five fields are needed (minute hour day month weekday), got {len(parts)}", code="bad_cron"
        )
    return parts, [field.read(part) for field, part in zip(_FIELDS, parts, strict=True)]


def _is_open(part: str, is_all: bool, other: str) -> bool:
    """Whether a field of days restricts nothing: ``*``, or all of its days where the other field has a ``*``."""
    return "*" in part.split(",") or (is_all and "*" in other)


def _moment(local: datetime, zone: ZoneInfo) -> datetime:
    """Local time in UTC: where the clocks skip it, by the offset that they have before or afterwards (PEP 495)."""
    moment = local.replace(tzinfo=zone).astimezone(UTC)
    if SKIPPED_COMES_LATER:
        return moment
    is_skipped = moment.astimezone(zone).replace(tzinfo=None) != local
    return local.replace(tzinfo=zone, fold=1).astimezone(UTC) if is_skipped else moment
