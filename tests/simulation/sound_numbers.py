"""No number goes wrong in silence: a division by zero, an overflow or a result that is no number breaks the seed."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Iterator
from typing import TextIO

from tests.simulation.world import World

_OF_NUMPY = re.compile(r"(divide by zero|overflow|invalid value) encountered")


@contextlib.contextmanager
def held_to(world: World) -> Iterator[None]:
    """Note what NumPy warns of, wherever the product does its sums; other warnings go where they went."""
    with warnings.catch_warnings():
        shown = warnings.showwarning
        warnings.filterwarnings("always", category=RuntimeWarning, message=_OF_NUMPY.pattern)

        def noted(
            message: Warning | str, category: type[Warning], filename: str, lineno: int,
            file: TextIO | None = None, line: str | None = None,
        ) -> None:
            if _OF_NUMPY.match(str(message)):
                world.breach(f"{message} ({filename.rpartition('/')[2]}, line {lineno})")
            else:
                shown(message, category, filename, lineno, file, line)

        warnings.showwarning = noted
        yield
