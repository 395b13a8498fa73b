"""A site's next key: made beside the one in use, and put in its place once the OEM knows it."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from services.contracts.errors import ConflictError, NotFoundError
from services.contracts.keys.signing import new_seed_file, public_key
from services.process.private_files import private_opener


def next_seed(seed: Path) -> Path:
    """Where the next key waits."""
    return seed.with_name(f"{seed.name}.next")


def make_next_key(seed: Path) -> str:
    """Make the next key and return its public half; the one that waits already, where there is one."""
    waiting = next_seed(seed)
    with _one_by_one(seed):
        return public_key(waiting) if waiting.exists() else new_seed_file(waiting)


def waiting_seed(seed: Path) -> Path:
    """The next key, which is there; ``NotFoundError`` where none waits."""
    waiting = next_seed(seed)
    if not waiting.exists():
        raise NotFoundError(f"no key waits at {waiting}; `ballast-site key new` makes one")
    return waiting


def use_next_key(seed: Path, tried: str | None = None) -> str:
    """Put the next key in the place of the present one, which is gone then; return its public half.

    Raises
    ------
    NotFoundError
        When no key waits.
    ConflictError
        When another waits than ``tried``: the key that the OEM let in was used meanwhile, and one made after it.
    """
    with _one_by_one(seed):
        waiting = waiting_seed(seed)
        key = public_key(waiting)
        if tried not in (None, key):
            raise ConflictError(
                f"the next key is another than the one that was tried, {tried}: it was changed meanwhile, and nothing "
                "is changed now; look at `ballast-site key show`"
            )
        waiting.replace(seed)
    return key


@contextmanager
def _one_by_one(seed: Path) -> Iterator[None]:
    """Commands on a site's keys take turns."""
    with open(seed.with_name(f"{seed.name}.lock"), "a", encoding="ascii", opener=private_opener) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
