"""Files of arrays (NPZ), read by one thread at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

_READING = threading.Lock()
"""numpy reads a header with Python's own parser, which of 3.11 (3.11.2 and 3.11.7) raises ``SystemError`` ("AST
constructor recursion depth mismatch") where a collection of garbage lets another thread into it meanwhile."""


@contextmanager
def opened_arrays(file: IO[bytes]) -> Iterator[Mapping[str, Any]]:
    """Arrays of a file by name, each read when it is asked for; none may be pickled. Raises what numpy raises."""
    with _READING, np.load(file, allow_pickle=False) as arrays:
        yield arrays
