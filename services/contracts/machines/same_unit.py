"""Whether two words for a unit are one, however their signs are encoded."""

from __future__ import annotations

from unicodedata import normalize


def same_unit(one: str, other: str) -> bool:
    """True where both read alike: the micro sign as the Greek letter, ``℃`` as ``°C``, ``m²`` as ``m2``."""
    return normalize("NFKC", one) == normalize("NFKC", other)
