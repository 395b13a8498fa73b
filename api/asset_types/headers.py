"""Headers of a table of measurements: the names and units that they say, and which one is meant by a name."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from services.contracts.errors import InvalidInputError

_WITH_UNIT = re.compile(r"(?P<name>.*\S)\s*[\[(](?P<unit>[^\[\]()]+)[\])]")


def meant_header(said: str, headers: Iterable[str], file: str) -> str:
    """Header that is meant: the one that is said, or the one that says this name beside a unit.

    The name may be as it stands there or as the draft writes it. ``InvalidInputError`` where no header, or several, say
    it.
    """
    headers = list(headers)
    if said in headers:
        return said
    found = [each for each in headers if said in (without_unit(each)[0], plain_name(without_unit(each)[0]))]
    if not found:
        raise InvalidInputError(f"{file} has no column {said!r}; it has {', '.join(headers)}")
    if len(found) > 1:
        raise InvalidInputError(f"{file} has {len(found)} columns {said!r}: say which of {', '.join(found)}")
    return found[0]


def without_unit(header: str) -> tuple[str, str]:
    """Name that a header says, and the unit, such as of ``pressure [bar]``; "1" where it has none."""
    match = _WITH_UNIT.fullmatch(header)
    return (match["name"], match["unit"].strip()) if match else (header, "1")


def is_found_at_plants(header: str, name: str, unit: str) -> bool:
    """Whether a plant reads a column with this header without being told: it has the name, or ``name [unit]``."""
    return header in (name, f"{name} [{unit}]")


def plain_name(said: str, front: str = "f_") -> str:
    """A name that contracts take: small letters without accents, digits and underscores, a letter first."""
    # Apart first: the letters of one character for a whole unit, such as that of dB, may be capitals.
    letters = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", said).casefold())
    letters = "".join(each for each in letters if not unicodedata.combining(each))
    plain = re.sub(r"[^a-z0-9]+", "_", letters).strip("_") or "x"
    return (plain if plain[0].isalpha() else front + plain)[:63]


def refuse_alike(said: Iterable[tuple[str, str]], where: str, mend: str, front: str = "f_") -> None:
    """Refuse two headers or words of which the same name would be made: each as it stands, and without its unit.

    ``mend`` says what to do instead.

    :class:`InvalidInputError` names both.
    """
    taken: dict[str, str] = {}
    for whole, name in said:
        plain = plain_name(name, front)
        if plain in taken:
            raise InvalidInputError(f"{where}: {taken[plain]!r} and {whole!r} would both be called {plain}; {mend}")
        taken[plain] = whole
