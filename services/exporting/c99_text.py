"""Names, texts and numbers as C99 writes them.

Texts of a contract stand in a header as string literals and never as code. Numbers are written so that they are read
back bit for bit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from models.basics import FloatArray

LONGEST = 500
"""Characters of a text that are kept: a C99 compiler need not take a literal of more than 4095 bytes."""


def identifier(text: str) -> str:
    """A text as a part of a C identifier: letters and digits of ASCII, anything else an underscore."""
    return re.sub(r"[^A-Za-z0-9]", "_", text)


def literal(text: str) -> str:
    """A text as a C string literal of printable ASCII: octal escapes of its UTF-8 bytes for everything else.

    An octal escape has three digits at most, so no character after it is taken in; ``?`` is escaped against trigraphs.
    """
    safe = {byte for byte in range(0x20, 0x7F)} - set(b'"\\?')
    return '"' + "".join(chr(byte) if byte in safe else f"\\{byte:03o}" for byte in text[:LONGEST].encode()) + '"'


class C99Writer:
    """Constants of one model: ``name`` begins every identifier, ``kind`` is ``double`` or ``float``.

    ``end`` is the suffix of a literal, and of a function of ``math.h``, of that kind.
    """

    def __init__(self, model: str, *, single: bool) -> None:
        self.kind, self.end = ("float", "f") if single else ("double", "")
        self.name = f"ballast_{identifier(model)}"
        self.upper = self.name.upper()

    def number(self, value: float) -> str:
        """A literal of the kind; what is beyond the largest of it is infinite."""
        if np.isnan(value):
            return "NAN"
        with np.errstate(over="ignore"):
            held = np.float32(value) if self.kind == "float" else np.float64(value)
        if np.isinf(held):
            return "INFINITY" if held > 0 else "-INFINITY"
        return f"{np.format_float_scientific(held, unique=True)}f" if self.kind == "float" else repr(float(held))

    def numbers(self, name: str, values: FloatArray) -> str:
        """A constant array of any shape, row by row."""
        flat = values.ravel().tolist()
        rows = [", ".join(self.number(value) for value in flat[at : at + 6]) for at in range(0, len(flat), 6)]
        return f"static const {self.kind} {self.name}_{name}[{len(flat)}] = {{\n    " + ",\n    ".join(rows) + "\n};"

    def integers(self, name: str, values: Sequence[int]) -> str:
        """A constant array of integers."""
        return f"static const int {self.name}_{name}[{len(values)}] = {{{', '.join(str(each) for each in values)}}};"

    def texts(self, name: str, values: Iterable[str]) -> str:
        """A constant array of texts."""
        found = [literal(value) for value in values]
        return f"static const char *const {self.name}_{name}[{len(found)}] = {{\n    " + ",\n    ".join(found) + "\n};"
