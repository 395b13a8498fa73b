"""What the commands of this folder have in common: arguments that are refused before anything is measured."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path

from models.basics import ProblemError
from services.contracts.errors import BallastError
from tests.benchmarks.data import MissingDataError


def output_file(text: str) -> Path:
    """A file that can be written when the measuring is done: its folder is there, and it is none itself.

    ``argparse.ArgumentTypeError`` otherwise.
    """
    path = Path(text)
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is a folder")
    if not path.absolute().parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {path.parent}")
    return path


def at_least(least: int = 1, most: int | None = None) -> Callable[[str], int]:
    """Reader of a whole number from ``least`` to ``most``; ``argparse.ArgumentTypeError`` for anything else."""
    wanted = f"a whole number at or above {least}" + ("" if most is None else f" and at most {most}")

    def read(text: str) -> int:
        number = int(text) if text.removeprefix("-").isdecimal() else least - 1
        if number < least or (most is not None and number > most):
            raise argparse.ArgumentTypeError(f"{text} is not {wanted}")
        return number

    return read


def above_nothing(text: str) -> float:
    """A finite number above 0; ``argparse.ArgumentTypeError`` for anything else."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0.0):
        raise argparse.ArgumentTypeError(f"{text} is not a finite number above 0")
    return number


def in_words(main: Callable[[], int | None]) -> int:
    """Exit code of a command; a table or server that is not there, or a problem without meaning, is one line."""
    try:
        return main() or 0
    except (MissingDataError, ProblemError, BallastError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
