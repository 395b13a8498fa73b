"""Files of arrays (NPZ), read by one thread at a time."""

from __future__ import annotations

import lzma
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from tokenize import TokenError
from typing import IO, Any
from zipfile import BadZipFile

import numpy as np
from numpy.lib.npyio import NpzFile

UNREADABLE = (
    BadZipFile, EOFError, OSError, RuntimeError, SyntaxError, TokenError, ValueError, lzma.LZMAError, zlib.error,
)
"""What a file raises that is no zip file of arrays, or a damaged one: packed by an unknown method, encrypted, cut.

A header that is no Python is told by numpy as Python's tokenizer tells it."""
_READING = threading.Lock()
"""numpy reads a header with Python's own parser, which of 3.11 (3.11.2 and 3.11.7) raises ``SystemError`` ("AST
constructor recursion depth mismatch") where a collection of garbage lets another thread into it meanwhile."""


@contextmanager
def opened_arrays(file: IO[bytes]) -> Iterator[Mapping[str, Any]]:
    """Arrays of a file by name, each read when it is asked for; none may be pickled. Raises :data:`UNREADABLE`."""
    with _READING:
        arrays = np.load(file, allow_pickle=False)
        if not isinstance(arrays, NpzFile):
            raise ValueError("a file of one array without a name")
        with arrays:
            yield arrays
