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
            self._by_site[answer.site_id] = answer if before is None else _added(before, answer, keep_status)

    def reject(self, site: str, code: str, reason: str) -> None:
        """What a plant answered counts for nothing."""
        self._change(site, status="rejected", code=code, reason=reason)

    def in_debt(self, answered: Sequence[str], told: Poll) -> None:
        """Where a sum is lost, a plant that did not reveal its shares has answered no more than one that is away."""
        for each in told.answers:
            site = each.site_id
            if site in answered and each.status != "accepted" and self._by_site[site].status == "accepted":
                self._change(site, status=each.status, code=each.code, reason=each.reason)

    def of(self, sites: Iterable[str] | None = None) -> tuple[SiteAnswer, ...]:
        """Accounts of these sites, where there are any; None: of all, by their ids."""
        wanted = sorted(self._by_site) if sites is None else sites
        return tuple(self._by_site[site] for site in wanted if site in self._by_site)

    def _change(self, site: str, **changed: str) -> None:
        self._by_site[site] = self._by_site[site].model_copy(update=changed)


def _added(before: SiteAnswer, answer: SiteAnswer, keep_status: bool) -> SiteAnswer:
    spent = {name: getattr(before, name) + getattr(answer, name) for name in ("bytes_in", "bytes_out", "seconds")}
    return (before if keep_status else answer).model_copy(update=spent)
