"""By which of its keys a plant is in its cohort, while it changes one for another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from services.contracts.history.run import SiteAnswer

ANOTHER_KEY = "cohort_not_allowed"
"""Code of a plant's no to a cohort that knows it by another key than its own."""


class KeysInUse:
    """One key of each plant; of two that hold during a change the new one first: which it uses the plant alone knows.

    A cohort names one: its plants sign what they are in, and one plant's policy may list the key of another.
    """

    def __init__(self, keys: Mapping[str, str], live: Mapping[str, str] | None = None) -> None:
        """``keys``: public keys that hold, by site; two of them, the new and the former, stand apart by a blank.

        ``live`` are those that hold at any time; None: they do not change. A plant without one there, such as one that
        is suspended, keeps what it had: the policies of others may list it, and it may be back while a round waits.
        """
        self._held, self._live = {site: key.split() or [""] for site, key in keys.items()}, live or {}

    def of(self, sites: Iterable[str]) -> dict[str, str]:
        """Keys in use, by site."""
        found = {}
        for site in sites:
            now = self._live.get(site, "").split()
            if now and {*now} != {*self._held[site]}:
                self._held[site] = now
            found[site] = self._held[site][0]
        return found

    def turn(self, answers: Iterable[SiteAnswer]) -> bool:
        """Take the other key of plants that do not know themselves by this one, where they have one; whether some do.

        The other one is the second of two that hold, or one that came while they were asked.
        """
        turned = False
        for site in (each.site_id for each in answers if each.code == ANOTHER_KEY):
            asked = self._held[site][0]
            if self.of([site])[site] == asked:
                self._held[site] = [*self._held[site][1:], asked]
            turned |= self._held[site][0] != asked
        return turned
