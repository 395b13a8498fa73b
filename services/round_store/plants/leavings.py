"""Plants that left: which of them are still to be forgotten, and what the store forgets of one.

Rows of the plant alone are deleted. In documents and sentences that tell of others too it bears a pseudonym, drawn anew
and kept nowhere, so that shares still sum to 1 and a sentence still reads. The audit trail stays: it is chained.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from services.contracts.errors import NotFoundError
from services.contracts.history.run import Leaving, Run
from services.round_store.database.documents import document
from services.round_store.database.queries import rows_touched
from services.round_store.database.session import Repository, utc_now
from services.round_store.plants.renaming import Renaming
from services.round_store.runs.run_leases import is_free_for
from services.round_store.runs.run_rows import FINAL
from services.round_store.runs.run_states import drop_states
from services.round_store.tables.operation import EnrolmentCodeRow, EventRow
from services.round_store.tables.plans import PlanRow, PlanVersionRow
from services.round_store.tables.runs import EvidenceRow, RunExchangeRow, RunRow, SiteUpdateRow
from services.round_store.tables.sites import SiteRow
from services.round_store.tables.versions import AliasChangeRow, ModelVersionRow

_ENDED = RunRow.status.in_(("completed", "failed"))
_LEFT = select(RunRow).where(RunRow.leaving.is_not(None), _ENDED).order_by(RunRow.created_at)
_RUN_DOCUMENTS = ("plan", "sites", "absentees", "excluded", "start", "reason")


@dataclass(frozen=True)
class Forgotten:
    """What was deleted and what bears a pseudonym now, by kind and number; models of others that still have it."""

    deleted: dict[str, int]
    pseudonymised: dict[str, int]
    other_models: tuple[str, ...]


class LeavingRepository(Repository):
    """Runs that train without a plant that left, and the forgetting of the plant."""

    def due(self) -> list[Run]:
        """Runs that ended, and after which a plant is still to be forgotten, oldest first; cancelled: not wanted."""
        with self._scope.read() as session:
            found = [Run.of_record(row) for row in session.scalars(_LEFT)]
        return [run for run in found if run.leaving is not None and not run.leaving.done]

    def take(self, run_id: str, owner: str, seconds: float) -> bool:
        """Take or prolong the forgetting after a run; False where another has it, or has done it meanwhile.

        It is the lease of the run, which nobody drives any more. One that ends later than any that is given now counts
        as expired: the clock was put back since.
        """
        with self._scope.write() as session:
            now = utc_now(session)
            until = {"lease_owner": owner, "lease_until": now + timedelta(seconds=seconds)}
            ours = RunRow.run_id == run_id, RunRow.leaving.is_not(None), _ENDED, is_free_for(owner, now, seconds)
            if not rows_touched(session.execute(update(RunRow).where(*ours).values(until))):
                return False
            left = session.scalar(select(RunRow.leaving).where(RunRow.run_id == run_id))
            return left is not None and not Leaving.model_validate(left).done

    def give_back(self, run_id: str, owner: str) -> None:
        """Let others take the forgetting after a run; nothing happens where it is another's."""
        with self._scope.write() as session:
            ours = RunRow.run_id == run_id, RunRow.lease_owner == owner, _ENDED
            session.execute(update(RunRow).where(*ours).values(lease_owner=None, lease_until=None))

    def runs_with(self, plan: str, site_id: str) -> list[str]:
        """Ids of a plan's runs in which a site took part, or was asked, newest first; ``NotFoundError``: in none."""
        wanted = select(RunRow).where(RunRow.plan_name == plan).order_by(RunRow.created_at.desc())
        with self._scope.read() as session:
            found = [row.run_id for row in session.scalars(wanted) if _names(row, site_id)]
        if not found:
            raise NotFoundError(f"no run of plan {plan} had the site {site_id}")
        return found

    def plans_with(self, site_id: str, *, but: str) -> tuple[str, ...]:
        """Names of the other plans of which a run had the site."""
        with self._scope.read() as session:
            rows = session.scalars(select(RunRow).where(RunRow.plan_name != but))
            return tuple(sorted({row.plan_name for row in rows if _names(row, site_id)}))

    def forget(self, plan: str, site_id: str) -> Forgotten:
        """Forget a plant in all that is of a plan, and its enrolment where no other plan's run had it; once more: none.

        An unfinished run is left alone: it is one without the plant. So is the enrolment of a plant that is back.
        """
        renamed = Renaming(site_id, f"left-{secrets.token_hex(4)}")
        with self._scope.write() as session:
            deleted, named = dict[str, int](), dict[str, int]()
            others = set[str]()
            for row in session.scalars(select(RunRow).with_for_update()):
                if row.plan_name != plan:
                    others |= {row.plan_name} if _names(row, site_id) else set()
                    continue
                if row.status not in FINAL:
                    continue
                if _names(row, site_id):  # also one that another plant left: it has the cuts of this one
                    drop_states(session, [row.run_id])
                _count(deleted, "evidence files", _evidence(session, row.run_id, renamed))
                _count(named, "runs", _change_run(row, renamed))
            for kind, table in (("answers", SiteUpdateRow), ("frames", RunExchangeRow)):
                ours = select(RunRow.run_id).where(RunRow.plan_name == plan)
                gone = session.execute(delete(table).where(table.site_id == site_id, table.run_id.in_(ours)))
                _count(deleted, kind, rows_touched(gone))
            _count(named, "plans", _rename(session, PlanRow, PlanRow.name == plan, ("document",), renamed))
            kept = ("document", "reason")
            _count(named, "plans", _rename(session, PlanVersionRow, PlanVersionRow.name == plan, kept, renamed))
            for kind, table_, mine in (
                ("versions", ModelVersionRow, ModelVersionRow.name == plan),
                ("aliases", AliasChangeRow, AliasChangeRow.name == plan),
            ):
                _count(named, kind, _rename(session, table_, mine, ("reason",), renamed))
            _events(session, site_id, None if not others else plan, renamed, deleted, named)
            if not others and not _is_enrolled(session, site_id):
                for kind, enrolled in (("enrolment codes", EnrolmentCodeRow), ("enrolments", SiteRow)):
                    gone = session.execute(delete(enrolled).where(enrolled.site_id == site_id))
                    _count(deleted, kind, rows_touched(gone))
            return Forgotten(deleted, named, tuple(sorted(others)))


def _names(row: RunRow, site_id: str) -> bool:
    asked = [*row.sites, *row.absentees, *row.excluded]
    return any(each.get("site_id") == site_id for each in asked)


def _is_enrolled(session: Session, site_id: str) -> bool:
    status = session.scalar(select(SiteRow.status).where(SiteRow.site_id == site_id))
    return status is not None and status != "removed"


def _change_run(row: RunRow, renamed: Renaming) -> int:
    """1 where the run named the plant: a member, one that was away, a term of its plan, a word of its reason."""
    before = {name: getattr(row, name) for name in _RUN_DOCUMENTS}
    after = renamed.document(before)
    for name, value in after.items():
        setattr(row, name, value)
    if row.digests:
        row.digests = {site: each for site, each in row.digests.items() if site != renamed.site_id}
    leaving = row.leaving is not None and row.leaving.get("site_id") == renamed.site_id
    if leaving:
        left = Leaving.model_validate(row.leaving)
        row.leaving = document(left.model_copy(update={"site_id": renamed.pseudonym, "done": True}))
    return int(leaving or after != before)


def _evidence(session: Session, run_id: str, renamed: Renaming) -> int:
    """Delete the files against the site, and cases of cohorts that have its answers in them."""
    gone = 0
    for row in session.scalars(select(EvidenceRow).where(EvidenceRow.run_id == run_id)):
        if row.site_id == renamed.site_id or renamed.stands_in(row.document.decode("latin-1")):
            session.delete(row)
            gone += 1
    return gone


def _rename(session: Session, table: Any, ours: Any, columns: tuple[str, ...], renamed: Renaming) -> int:
    changed = 0
    for row in session.scalars(select(table).where(ours)):
        before = {name: getattr(row, name) for name in columns}
        for name, value in renamed.document(before).items():
            if value != before[name]:
                setattr(row, name, value)
                changed += 1
    return changed


def _events(
    session: Session, site_id: str, plan: str | None, renamed: Renaming, deleted: dict[str, int],
    named: dict[str, int],
) -> None:
    """Delete the events of the site, rename it in those of others; ``plan``: in that one's alone."""
    for row in session.scalars(select(EventRow)):
        if plan is not None and row.document.get("plan") != plan:
            continue
        if row.document.get("site_id") == site_id:
            session.delete(row)
            _count(deleted, "events", 1)
            continue
        after = renamed.document(row.document)
        if after != row.document:
            row.document = after
            _count(named, "events", 1)


def _count(counts: dict[str, int], kind: str, number: int) -> None:
    if number:
        counts[kind] = counts.get(kind, 0) + number
