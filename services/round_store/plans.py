"""Plans."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from services.contracts.errors import ConflictError, InvalidInputError
from services.contracts.plan import Plan
from services.contracts.records import PlanRecord
from services.round_store.documents import document
from services.round_store.queries import insert_new, stored_row
from services.round_store.session import Repository, utc_now
from services.round_store.tables import AssetTypeRow, PlanRow


class PlanRepository(Repository):
    """Plans as operators wrote them, and whether each is paused."""

    def create(self, plan: Plan, *, paused: bool = False) -> PlanRecord:
        """Store a new plan; ``ConflictError`` when its name is taken, ``InvalidInputError`` without its asset type."""
        with self._scope.write() as session:
            if session.scalar(select(AssetTypeRow.name).where(AssetTypeRow.name == plan.asset_type).limit(1)) is None:
                raise InvalidInputError(f"plan {plan.name} names the asset type {plan.asset_type}, which is not there")
            if session.get(PlanRow, plan.name) is not None:
                raise ConflictError(f"there is a plan {plan.name} already")
            now = utc_now(session)
            row = PlanRow(name=plan.name, document=document(plan), paused=paused, created_at=now, updated_at=now)
            insert_new(session, row, f"there is a plan {plan.name} already")
            return _to_record(row)

    def set_paused(self, name: str, paused: bool) -> PlanRecord:
        """Pause or resume a plan; to do so again changes nothing."""
        with self._scope.write() as session:
            row = _row(session, name, lock=True)
            if row.paused != paused:
                row.paused, row.updated_at = paused, utc_now(session)
            return _to_record(row)

    def get(self, name: str) -> PlanRecord:
        """Plan by name; raise ``NotFoundError``."""
        with self._scope.read() as session:
            return _to_record(_row(session, name))

    def list_plans(self) -> list[PlanRecord]:
        """All plans by name."""
        with self._scope.read() as session:
            return [_to_record(row) for row in session.scalars(select(PlanRow).order_by(PlanRow.name))]


def _row(session: Session, name: str, *, lock: bool = False) -> PlanRow:
    return stored_row(session, PlanRow, name, f"no plan {name}", lock=lock)


def _to_record(row: PlanRow) -> PlanRecord:
    return PlanRecord.of_record(row, plan=row.document)
