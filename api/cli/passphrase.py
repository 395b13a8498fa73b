"""Where a backup's passphrase comes from: a file, the environment or the terminal, never the command line."""

from __future__ import annotations

import argparse
import getpass
import os
import stat
import sys
from pathlib import Path
from typing import Final

from services.contracts.errors import InvalidInputError
from services.contracts.plain_words import plain
from services.process.private_files import UMASK

VARIABLE: Final = "BALLAST_PASSPHRASE"


def add_passphrase(parser: argparse.ArgumentParser) -> None:
    """Add ``--passphrase-file``."""
    parser.add_argument(
        "--passphrase-file", type=Path, metavar="FILE",
        help=f"file whose first line is the passphrase (default: ${VARIABLE}, else it is asked for)",
    )


def _warn_if_shown(file: Path, found: os.stat_result) -> None:
    """Say to stderr that others can read or write a file; of a pipe the mode says nothing."""
    mode = stat.S_IMODE(found.st_mode)
    if stat.S_ISREG(found.st_mode) and mode & UMASK:
        print(
            f"ballast: note: the passphrase file {plain(str(file))} has mode {mode:04o}: others can read it; "
            "chmod go= it, and where others use this host take another passphrase", file=sys.stderr,
        )


def read_passphrase(file: Path | None, *, twice: bool) -> str:
    """Passphrase of the file, the environment or the terminal, in this order; ``InvalidInputError`` where none is.

    A file that others can read is taken, with a word to stderr: it may be mounted so.
    """
    given = os.environ.pop(VARIABLE, "")  # no child process is to inherit it
    if file is not None:
        try:
            with file.open(encoding="utf-8") as opened:
                _warn_if_shown(file, os.fstat(opened.fileno()))
                given = opened.readline().partition("\n")[0].rstrip("\r")
        except UnicodeDecodeError:
            raise InvalidInputError(f"the passphrase file {file} is not UTF-8 text") from None
        except OSError as error:
            raise InvalidInputError(f"the passphrase file {file} cannot be read: {error.strerror}") from None
    elif not given:
        if sys.stdin is None or not sys.stdin.isatty():
            raise InvalidInputError(f"no passphrase: give --passphrase-file or {VARIABLE}, or call from a terminal")
        given = _asked("passphrase of the backup: ")
        if twice and _asked("once more: ") != given:
            raise InvalidInputError("the two passphrases differ; nothing was written")
    if not given:
        raise InvalidInputError("the passphrase is empty")
    try:
        given.encode()
    except UnicodeEncodeError:  # of the environment or the terminal, in another encoding
        raise InvalidInputError("the passphrase is not UTF-8 text") from None
    return given


def _asked(prompt: str) -> str:
    """What is typed at the terminal; ``InvalidInputError`` where the input ends (Ctrl-D)."""
    try:
        return getpass.getpass(prompt)
    except EOFError:
        print(file=sys.stderr)  # the prompt's line
        raise InvalidInputError("no passphrase was typed; nothing was written") from None
