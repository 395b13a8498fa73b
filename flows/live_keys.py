"""Public keys of the sites as the store has them now, also in the middle of a run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping

FRESH_SECONDS = 0.5
"""How long what was read is used again: a key that was taken away counts for no longer."""


class LiveKeys(Mapping[str, str]):
    """Keys of the same sites throughout, read again where they are older than half a second.

    ``read`` gives the keys that hold now, by site id. A site without one keeps its place with no key, so that nothing
    that it signs is let in; it is missed like one that is away.
    """

    def __init__(
        self,
        sites: Iterable[str],
        read: Callable[[], Mapping[str, str]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sites = tuple(sites)
        self._read = read
        self._clock = clock
        self._keys: Mapping[str, str] = {}
        self._until = float("-inf")

    def __getitem__(self, site_id: str) -> str:
        if site_id not in self._sites:
            raise KeyError(site_id)
        if self._clock() >= self._until:
            self._keys = self._read()
            self._until = self._clock() + FRESH_SECONDS
        return self._keys.get(site_id, "")

    def __iter__(self) -> Iterator[str]:
        return iter(self._sites)

    def __len__(self) -> int:
        return len(self._sites)
