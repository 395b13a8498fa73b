"""What both commands do alike: their version, how a result is printed, and a reader that has seen enough."""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
from contextlib import suppress
from typing import TextIO

FOR_EVER = 1e9
"""Seconds that nobody waits out, some thirty years; a few times as many are more than a clock of the system takes."""
LONGEST = 200
"""Characters of a path that are told."""
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Errors of a disk that takes no more."""


class ShowVersion(argparse.Action):
    """``--version``: print the version of the installed distribution; it is looked up only then."""

    def __init__(self, option_strings: list[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print it and end."""
        print(f"{parser.prog} {product_version()}")
        parser.exit()


def product_version() -> str:
    """Version of the installed distribution."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("ballast-diagnosis")
    except PackageNotFoundError:  # a source tree on the path, not installed
        return "0+source"


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``, which every command has that prints a result."""
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def add_ready_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json`` to what serves until it is stopped."""
    parser.add_argument("--json", action="store_true", help="print one line of JSON once it is ready")


def print_json(value: object) -> None:
    """Print a result as JSON; a number that JSON has no form for is a word."""
    import json

    from services.contracts.documents import to_plain

    print(json.dumps(to_plain(value), indent=2, ensure_ascii=_is_not_utf_8(), allow_nan=False))


def print_line(value: object) -> None:
    """Print a result as one line of JSON at once, from what goes on until it is stopped."""
    import json

    from services.contracts.documents import to_plain

    print(json.dumps(to_plain(value), ensure_ascii=_is_not_utf_8(), allow_nan=False), flush=True)


def _is_not_utf_8() -> bool:
    """Whether the output is in an encoding that JSON is not in, as of a locale of before; ASCII is in each."""
    said = getattr(sys.stdout, "encoding", None) or "utf-8"
    return said.lower().replace("-", "").replace("_", "") != "utf8"


def print_any_letter() -> None:
    """Let the output have each letter, by its number where its encoding has no such one."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def tell(args: argparse.Namespace, value: object, *lines: str) -> None:
    """Print a result: ``value`` as JSON where ``--json`` asks for it, else the lines, for people."""
    if args.json:
        print_json(value)
        return
    for line in lines:
        print(line)


def say_all() -> None:
    """Write out what was printed; nothing where the command was started without a standard output."""
    if sys.stdout is not None:
        sys.stdout.flush()


def file_trouble(command: str, error: OSError) -> int:
    """End with one line where a disk is full, as that of the output may be, or a file is in the way; the exit code."""
    if error.errno in FULL:
        print(f"{command}: nothing more can be written: {error.strerror}", file=sys.stderr)
        return reader_left()
    if error.filename is None:
        raise error
    print(f"{command}: {' '.join(str(error.filename).split())[:LONGEST]}: {error.strerror}", file=sys.stderr)
    return 1


def reader_left() -> int:
    """End quietly where the reader of what is printed, such as ``head``, has seen enough; the exit code."""
    with suppress(OSError, AttributeError):  # where there is none, or it is no file, nothing could be written later
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def standard_input() -> TextIO:
    """The standard input; ``InvalidInputError`` in one line where the command was started without one."""
    from services.contracts.errors import InvalidInputError

    if sys.stdin is None:
        raise InvalidInputError("there is no standard input to read from: it was closed when the command was started")
    return sys.stdin


def seconds(text: str) -> float:
    """Argument that is a time to wait, in seconds, for ``type=``; of one that no clock can wait, :data:`FOR_EVER`."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise argparse.ArgumentTypeError(f"give a number of seconds above 0, not {text[:40]!r}")
    return min(found, FOR_EVER)


def port(text: str) -> int:
    """Argument that is a TCP port, for ``type=``."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"give a port from 1 to 65535, not {text[:40]!r}")
    return number


def whole_number(text: str, least: int = 1) -> int:
    """Argument that counts something, for ``type=``; :data:`sys.maxsize`, which databases take too, of more."""
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"give a whole number at or above {least}, not {text[:40]!r}")
    return min(number, sys.maxsize)
