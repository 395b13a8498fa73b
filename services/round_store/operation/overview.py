"""What pages show of many runs at once: one statement each, bounded however long the history is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Select, and_, case, func, or_, select, true, tuple_

from services.contracts.base import Contract
from services.contracts.history.records import AliasChange, VersionRecord
from services.contracts.history.run import RoundPoint, Run, SiteAnswer
from services.round_store.database.queries import page
from services.round_store.database.session import Repository
from services.round_store.tables.runs import RoundRow, RunRow, SiteUpdateRow
from services.round_store.tables.versions import AliasChangeRow, ModelVersionRow

RECENT_ROUNDS = 20
"""Rounds of a run that are looked through for a site's last answer."""
RUNS_AT_ONCE = 200
"""Runs of one statement: SQLite takes no more than a thousand conditions."""


class SiteTotals(Contract):
    """A site's part in all rounds of a run: how often it answered or not, bytes to and from it, seconds."""

    site_id: str
    accepted: int
    missed: int
    last_accepted_round: int | None
    bytes_to_site: int
    bytes_from_site: int
    seconds: float


class Missed(SiteAnswer):
    """What stands in the place of an answer in a round."""

    round: int


class OverviewRepository(Repository):
    """Reads over many runs, versions and sites."""

    def newest_runs(self, *, with_rounds: bool = False) -> list[Run]:
        """The newest run of each plan, newest first; of those alone that committed a round, where this is asked for."""
        looked_at = RunRow.rounds > 0 if with_rounds else true()
        newest = select(RunRow.plan_name, func.max(RunRow.created_at)).where(looked_at).group_by(RunRow.plan_name)
        wanted = select(RunRow).where(looked_at, tuple_(RunRow.plan_name, RunRow.created_at).in_(newest))
        with self._scope.read() as session:
            rows = session.scalars(wanted.order_by(RunRow.created_at.desc(), RunRow.run_id))
            found: dict[str, Run] = {}
            for row in rows:
                found.setdefault(row.plan_name, Run.of_record(row))
            return list(found.values())

    def run_totals(self) -> dict[str, tuple[int, int]]:
        """How many runs have each status, and how many rounds these committed."""
        wanted = select(RunRow.status, func.count(), func.sum(RunRow.rounds)).group_by(RunRow.status)
        with self._scope.read() as session:
            return {status: (runs, int(rounds or 0)) for status, runs, rounds in session.execute(wanted)}

    def last_answers(self, runs: Sequence[Run]) -> dict[str, datetime]:
        """When each site last answered one of these runs, looking at their last :data:`RECENT_ROUNDS` rounds."""
        begun, found = [run for run in runs if run.rounds], dict[str, datetime]()
        of_round = and_(RoundRow.run_id == SiteUpdateRow.run_id, RoundRow.round == SiteUpdateRow.round)
        with self._scope.read() as session:
            for start in range(0, len(begun), RUNS_AT_ONCE):
                recent = [and_(SiteUpdateRow.run_id == run.run_id, SiteUpdateRow.round > run.rounds - RECENT_ROUNDS)
                          for run in begun[start : start + RUNS_AT_ONCE]]
                wanted = (
                    select(SiteUpdateRow.site_id, func.max(RoundRow.committed_at)).join(RoundRow, of_round)
                    .where(or_(*recent), SiteUpdateRow.status == "accepted").group_by(SiteUpdateRow.site_id)
                )
                for site, at in session.execute(wanted):
                    found[site] = max(at, found.get(site, at))
        return found

    def aliases(self) -> dict[tuple[str, str], AliasChange]:
        """The last change of every alias, by model and alias."""
        last = select(func.max(AliasChangeRow.number)).group_by(AliasChangeRow.name, AliasChangeRow.alias)
        with self._scope.read() as session:
            rows = session.scalars(select(AliasChangeRow).where(AliasChangeRow.number.in_(last)))
            return {(row.name, row.alias): AliasChange.of_record(row) for row in rows}

    def newest_versions(self) -> dict[str, VersionRecord]:
        """The newest version of each model that the store knows and that was not forgotten, by model."""
        there, moment = ModelVersionRow.status != "forgotten", func.max(ModelVersionRow.created_at)
        newest = select(ModelVersionRow.name, moment).where(there).group_by(ModelVersionRow.name)
        of_newest = tuple_(ModelVersionRow.name, ModelVersionRow.created_at).in_(newest)
        wanted = select(ModelVersionRow).where(there, of_newest)
        with self._scope.read() as session:
            return {row.name: VersionRecord.of_record(row) for row in session.scalars(wanted)}

    def points(self, run_id: str, after: int = 0, limit: int = 10_000) -> list[RoundPoint]:
        """Bounds and cost of the rounds of a run later than ``after``, without what the sites answered."""
        wanted = select(RoundRow).where(RoundRow.run_id == run_id, RoundRow.round > after)
        with self._scope.read() as session:
            rows = session.scalars(wanted.order_by(RoundRow.round).limit(limit))
            return [RoundPoint.of_record(row) for row in rows]

    def totals(self, run_id: str) -> list[SiteTotals]:
        """Each site's part in all rounds of a run, by site."""
        held = SiteUpdateRow.status == "accepted"
        at_work = SiteUpdateRow.status == "open"
        wanted = select(
            SiteUpdateRow.site_id,
            func.sum(case((held, 1), else_=0)).label("accepted"),
            func.sum(case((held | at_work, 0), else_=1)).label("missed"),
            func.max(case((held, SiteUpdateRow.round))).label("last_accepted_round"),
            func.sum(SiteUpdateRow.bytes_out).label("bytes_to_site"),
            func.sum(SiteUpdateRow.bytes_in).label("bytes_from_site"),
            func.sum(SiteUpdateRow.seconds).label("seconds"),
        ).where(SiteUpdateRow.run_id == run_id).group_by(SiteUpdateRow.site_id).order_by(SiteUpdateRow.site_id)
        with self._scope.read() as session:
            return [SiteTotals.of_record(row) for row in session.execute(wanted)]

    def missed(self, run_id: str, limit: int = 50) -> list[Missed]:
        """Answers of a run that were not accepted, the latest first."""
        return self._answers(select(*_MISSED).where(
            SiteUpdateRow.run_id == run_id, SiteUpdateRow.status.not_in(("accepted", "open"))
        ).order_by(SiteUpdateRow.round.desc(), SiteUpdateRow.site_id), limit)

    def answers(self, run_id: str, round_: int) -> list[Missed]:
        """What each site did in one round, by site."""
        return self._answers(select(*_MISSED).where(
            SiteUpdateRow.run_id == run_id, SiteUpdateRow.round == round_
        ).order_by(SiteUpdateRow.site_id), 1000)

    def _answers(self, wanted: Select[tuple[object, ...]], limit: int) -> list[Missed]:
        with self._scope.read() as session:
            return [Missed.of_record(row) for row in session.execute(page(wanted, limit, 0))]


_MISSED = [getattr(SiteUpdateRow, name) for name in Missed.model_fields]
