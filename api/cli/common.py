"""What the commands on the store share: where home is, one action below a command, and how results are printed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from api.backend.wiring import Backend, open_backend
from services.contracts.base import Contract, in_utc
from services.contracts.errors import InvalidInputError
from services.contracts.plain_words import plain
from services.contracts.reading import explain
from services.process.command_line import add_json
from services.process.command_line import print_json as print_json
from services.process.command_line import tell as tell
from services.process.settings import Settings
from services.process.terminal import Mood, mood_of, shaded

if TYPE_CHECKING:
    Actions = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001, it has no public name

AnyContract = TypeVar("AnyContract", bound=Contract)
AnyValue = TypeVar("AnyValue")
Do = Callable[[Backend, argparse.Namespace], int | None]
"""What an action does; its exit code, None for 0."""
LEAST_REASON, MOST_REASON = 3, 500
"""Characters of a reason that must be given."""
STATES = frozenset({"status", "agent is"})
"""Columns of which a cell is a state."""
Column = str | Callable[[Any], Any]
"""A field of what a row shows, such as ``plan.name``, or a function of it."""


def add_home(parser: argparse.ArgumentParser) -> None:
    """Add ``--home``."""
    parser.add_argument(
        "--home", type=Path, help="folder of settings, database and logs (default: $BALLAST_HOME or .ballast)"
    )


def add_actions(parser: argparse.ArgumentParser) -> Actions:
    """Say that a command needs an action."""
    return parser.add_subparsers(dest="action", required=True, metavar="ACTION", title="actions")


def add_action(
    actions: Actions, name: str, do: Do, about: str, *names: str, lists: bool = True, reason: bool = False
) -> argparse.ArgumentParser:
    """Add an action with the names that it needs, such as ``RUN_ID``.

    It prints a result, as JSON where asked, unless ``lists`` is false; with ``reason`` one may be given.
    """
    parser = actions.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
    parser.set_defaults(do=do)
    add_home(parser)
    if lists:
        add_json(parser)
    for metavar in names:
        parser.add_argument(metavar.lower(), metavar=metavar)
    if reason:
        add_reason(parser)
    return parser


def add_reason(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Add ``--reason``."""
    parser.add_argument(
        "--reason", default="", required=required, type=_said if required else str,
        help="why; it goes into the audit trail",
    )


def _said(text: str) -> str:
    """A reason that must be given, as the API asks for it."""
    reason = text.strip()
    if not LEAST_REASON <= len(reason) <= MOST_REASON:
        raise argparse.ArgumentTypeError(f"say why in {LEAST_REASON} to {MOST_REASON} characters")
    return reason


def add_yes_or_no(parser: argparse.ArgumentParser, name: str, yes: str, no: str) -> None:
    """Add a filter of a list: ``--name`` for those that are so, or ``--no-name`` for those that are not."""
    word = name.removeprefix("--")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(name, dest=word, action="store_const", const=True, help=yes)
    chosen.add_argument(f"--no-{word}", dest=word, action="store_const", const=False, help=no)


def add_times(parser: argparse.ArgumentParser) -> None:
    """Add ``--since`` and ``--until``."""
    for name, about in (("--since", "from this moment on"), ("--until", "before this moment")):
        parser.add_argument(name, type=_moment, metavar="WHEN", help=f"{about}, such as 2027-01-31T08:00Z, or a date")


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        return in_utc(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no moment: give one such as 2027-01-31") from None


def run_action(args: argparse.Namespace) -> int:
    """Do the action on the backend of the wanted home, its database checked; the exit code."""
    with open_backend(Settings.load(args.home)) as backend:
        backend.check_store()
        code: int | None = args.do(backend, args)
        return code or 0


def checked(kind: type[AnyContract], what: str, **values: Any) -> AnyContract:
    """Contract of what was typed; ``InvalidInputError`` with one line where it does not fit."""
    try:
        return kind(**values)
    except ValidationError as error:
        raise InvalidInputError(f"{what}: {explain(error, kind)}") from None


def note_unknown(what: str, name: str | None, known: Iterable[str]) -> None:
    """Say to stderr that a filter names what is not there, with what was likely meant: an empty list does not tell."""
    from services.contracts.unknown_keys import nearest

    names = [*known]
    if name is not None and name not in names:
        near = nearest(name, names)
        meant = "" if near is None else f"; did you mean {near}?"
        print(f"ballast: note: there is no {what} {plain(name)}{meant}", file=sys.stderr)


def note_asset_type(backend: Backend, name: str | None) -> None:
    """Say where a filter's asset type is not there."""
    if name is not None:
        known = (each.asset_type.name for each in backend.store.asset_types.list_asset_types())
        note_unknown("asset type", name, known)


def once(option: str, pairs: Iterable[tuple[str, AnyValue]]) -> dict[str, AnyValue]:
    """What an option gives for each name; ``InvalidInputError`` where it gives one twice."""
    found: dict[str, AnyValue] = {}
    for name, value in pairs:
        if name in found:
            raise InvalidInputError(f"{option} gives {name} twice: give it once")
        found[name] = value
    return found


def print_list(args: argparse.Namespace, found: Iterable[Any], columns: Mapping[str, Column]) -> None:
    """Print a list as JSON where asked, else as a table."""
    if args.json:
        print_json(found)
    else:
        print_table(found, columns)


def print_table(found: Iterable[Any], columns: Mapping[str, Column]) -> None:
    """Print a row each below the columns' names, in columns as wide as what stands in them; states in their colour."""
    readers = [attrgetter(column) if isinstance(column, str) else column for column in columns.values()]
    lines = [[name.upper() for name in columns], *([_cell(read(item)) for read in readers] for item in found)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(columns))]
    states = {number for number, name in enumerate(columns) if name in STATES}
    for row, line in enumerate(lines):
        cells = []
        for number, (text, width) in enumerate(zip(line, widths, strict=True)):
            mood: Mood | None = "title" if row == 0 else mood_of(text) if number in states else None
            cells.append(shaded(text, mood) + " " * (width - len(text)))
        print("  ".join(cells).rstrip())


def print_fields(fields: Iterable[tuple[str, Any]]) -> None:
    """Print names and values, a line each."""
    shown = [(name, _cell(value)) for name, value in fields]
    width = max(len(name) for name, _ in shown)
    for name, text in shown:
        print(f"{name.ljust(width)}  {text}".rstrip())


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if hasattr(value, "isoformat"):
        return str(value.isoformat(sep=" ", timespec="seconds"))
    if isinstance(value, list | tuple):
        return plain(", ".join(str(item) for item in value)) or "-"
    return plain(str(value))
