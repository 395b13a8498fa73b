"""Where a backup's passphrase comes from: a file, the environment or the terminal, never the command line."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from pathlib import Path
from typing import Final

from services.contracts.errors import InvalidInputError

VARIABLE: Final = "BALLAST_PASSPHRASE"


def add_passphrase(parser: argparse.ArgumentParser) -> None:
    """Add ``--passphrase-file``."""
    parser.add_argument(
        "--passphrase-file", type=Path, metavar="FILE",
        help=f"file whose first line is the passphrase (default: ${VARIABLE}, else it is asked for)",
    )


def read_passphrase(file: Path | None, *, twice: bool) -> str:
    """Passphrase of the file, the environment or the terminal, in this order; ``InvalidInputError`` where none is."""
    given = os.environ.pop(VARIABLE, "")  # no child process is to inherit it
    if file is not None:
        try:
            given = file.read_text(encoding="utf-8").partition("\n")[0].rstrip("\r")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInputError(f"the passphrase file {file} cannot be read: {error}") from None
    elif not given:
        if not sys.stdin.isatty():
            raise InvalidInputError(f"no passphrase: give --passphrase-file or {VARIABLE}, or call from a terminal")
        given = getpass.getpass("passphrase of the backup: ")
        if twice and getpass.getpass("once more: ") != given:
            raise InvalidInputError("the two passphrases differ; nothing was written")
    if not given:
        raise InvalidInputError("the passphrase is empty")
    return given
