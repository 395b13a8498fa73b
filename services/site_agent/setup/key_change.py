"""A site's next key: made beside the one in use, and put in its place once the OEM knows it."""

from __future__ import annotations

from pathlib import Path

from services.contracts.errors import NotFoundError
from services.contracts.keys.signing import new_seed_file, public_key


def next_seed(seed: Path) -> Path:
    """Where the next key waits."""
    return seed.with_name(f"{seed.name}.next")


def make_next_key(seed: Path) -> str:
    """Make the next key and return its public half; the one that waits already, where there is one."""
    waiting = next_seed(seed)
    return public_key(waiting) if waiting.exists() else new_seed_file(waiting)


def waiting_seed(seed: Path) -> Path:
    """The next key, which is there; ``NotFoundError`` where none waits."""
    waiting = next_seed(seed)
    if not waiting.exists():
        raise NotFoundError(f"no key waits at {waiting}; `ballast-site key new` makes one")
    return waiting


def use_next_key(seed: Path) -> str:
    """Put the next key in the place of the present one, which is gone then; return its public half.

    Raises
    ------
    NotFoundError
        When no key waits.
    """
    waiting = waiting_seed(seed)
    key = public_key(waiting)
    waiting.replace(seed)
    return key
