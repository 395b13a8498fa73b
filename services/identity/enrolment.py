"""What is checked before a site is enrolled."""

from __future__ import annotations

from services.contracts.errors import InvalidInputError
from services.contracts.keys.signing import check_public_key


def check_site_key(key: str) -> str:
    """Public key of a site, without blanks around it, if it is a NATS user nkey (``U...``, checksum included).

    Raises
    ------
    InvalidInputError
        Otherwise, in one line that never repeats the key: it could be the secret seed, which must stay at the plant.
    """
    stripped = key.strip()
    if stripped.startswith("S"):
        raise InvalidInputError(
            "this looks like a secret seed (S...), which must not leave the plant: make a new one there, and give the "
            "public key, which starts with U",
            code="secret_seed",
        )
    return check_public_key(stripped)
