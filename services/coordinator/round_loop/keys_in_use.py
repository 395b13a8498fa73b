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

    def __init__(self, keys: Mapping[str, str]) -> None:
        """``keys``: public keys that hold, by site; two of them, the new and the former, stand apart by a blank."""
        self._held = {site: key.split() or [""] for site, key in keys.items()}

    def of(self, sites: Iterable[str]) -> dict[str, str]:
        """Keys in use, by site."""
        return {site: self._held[site][0] for site in sites}

    def turn(self, answers: Iterable[SiteAnswer]) -> bool:
        """Take the other key of plants that have two and do not know themselves by this one; whether there are such."""
        turned = [self._held[each.site_id] for each in answers
                  if each.code == ANOTHER_KEY and len(self._held[each.site_id]) > 1]
        for held in turned:
            held.append(held.pop(0))
        return bool(turned)
