"""The account of every plant over the exchanges of a round on sums."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from services.contracts.history.run import SiteAnswer
from services.coordinator.asking.poll import Poll


class SumAccounts:
    """What each plant answered in a round, by its id: bytes and seconds of all exchanges, one status."""

    def __init__(self) -> None:
        self._by_site: dict[str, SiteAnswer] = {}

    def add(self, answers: Iterable[SiteAnswer], *, keep_status: bool) -> None:
        """Add an exchange: its bytes and seconds, and its status too, unless the one before is kept."""
        for answer in answers:
            before = self._by_site.get(answer.site_id)
            if before is not None:
                names = ("bytes_in", "bytes_out", "seconds")
                spent = {name: getattr(before, name) + getattr(answer, name) for name in names}
                answer = (before if keep_status else answer).model_copy(update=spent)  # noqa: PLW2901
            self._by_site[answer.site_id] = answer

    def reject(self, site: str, code: str, reason: str) -> None:
        """What a plant answered counts for nothing."""
        changed = {"status": "rejected", "code": code, "reason": reason}
        self._by_site[site] = self._by_site[site].model_copy(update=changed)

    def in_debt(self, answered: Sequence[str], told: Poll) -> None:
        """Where a sum is lost, a plant that did not reveal its shares has answered no more than one that is away."""
        for each in told.answers:
            if each.site_id not in answered or each.status == "accepted":
                continue
            before = self._by_site[each.site_id]
            if before.status == "accepted":
                changed = {"status": each.status, "code": each.code, "reason": each.reason}
                self._by_site[each.site_id] = before.model_copy(update=changed)

    def of(self, sites: Iterable[str] | None = None) -> tuple[SiteAnswer, ...]:
        """Accounts of these sites, where there are any; None: of all, by their ids."""
        wanted = sorted(self._by_site) if sites is None else sites
        return tuple(self._by_site[site] for site in wanted if site in self._by_site)
