"""What the commands share: where home is, one action below a command, and how results are printed."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from api.wiring import Backend, open_backend
from services.contracts.documents import to_plain
from services.contracts.settings import Settings

if TYPE_CHECKING:
    Actions = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001, it has no public name

Do = Callable[[argparse.Namespace], int]


def add_home(parser: argparse.ArgumentParser) -> None:
    """Add ``--home``."""
    parser.add_argument(
        "--home", type=Path, help="folder of settings, database and logs (default: $BALLAST_HOME or .ballast)"
    )


def add_actions(parser: argparse.ArgumentParser) -> Actions:
    """Say that a command needs an action."""
    return parser.add_subparsers(dest="action", required=True, metavar="ACTION", title="actions")


def add_action(actions: Actions, name: str, do: Do, about: str, *, lists: bool = False) -> argparse.ArgumentParser:
    """Add an action; with ``lists`` it prints a result, as JSON where asked."""
    parser = actions.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
    parser.set_defaults(do=do)
    add_home(parser)
    if lists:
        parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def add_reason(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Add ``--reason``."""
    parser.add_argument("--reason", default="", required=required, help="why; it goes into the audit trail")


@contextmanager
def opened(args: argparse.Namespace) -> Iterator[Backend]:
    """Backend of the wanted home, its database checked."""
    with open_backend(Settings.load(args.home)) as backend:
        backend.check_store()
        yield backend


def print_json(value: object) -> None:
    """Print a result as JSON."""
    print(json.dumps(to_plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def print_table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print rows below their heads, in columns as wide as what stands in them."""
    lines = [[name.upper() for name in head], *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


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
        return ", ".join(str(item) for item in value) or "-"
    return " ".join(str(value).split())
