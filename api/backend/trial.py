"""A change on trial: everything is checked and made as if it were meant, and nothing of it is kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from api.backend.wiring import Backend
from services.round_store.store import Repositories


class _NothingKeptError(Exception):
    """Ends a transaction that was on trial."""


@contextmanager
def changing(backend: Backend, *, dry_run: bool = False) -> Iterator[Repositories]:
    """One transaction of a change and its audit entry; with ``dry_run`` it is undone at its end.

    What cannot be changed raises as ever, for the change is made in the store, with all that the store itself checks.
    """
    with suppress(_NothingKeptError), backend.store.atomic() as store:
        yield store
        if dry_run:
            raise _NothingKeptError
