"""Plans and their versions."""

from __future__ import annotations

from sqlalchemy import delete, exists, select
from sqlalchemy.orm import Session

from services.contracts.errors import ConflictError, InvalidInputError
from services.contracts.history.plan_notices import plan_notices
from services.contracts.history.records import PlanRecord, PlanVersion
from services.contracts.plans.plan import Plan
from services.round_store.database.documents import document, sentence
from services.round_store.database.queries import insert_new, stored_row
from services.round_store.database.session import Repository, utc_now
from services.round_store.tables.plans import AssetTypeRow, PlanRow, PlanVersionRow
from services.round_store.tables.runs import UNFINISHED_STATUSES, RunRow
from services.round_store.tables.versions import ModelVersionRow


class PlanRepository(Repository):
    """Plans as operators wrote them, every version of them, and whether each is paused or archived."""

    def create(self, plan: Plan, *, paused: bool = False, actor: str = "", reason: str = "") -> PlanRecord:
        """Store a new plan; ``ConflictError`` when its name is taken, ``InvalidInputError`` without its asset type."""
        with self._scope.write() as session:
            _check_asset_type(session, plan)
            if session.get(PlanRow, plan.name) is not None:
                raise ConflictError(f"there is a plan {plan.name} already")
            now = utc_now(session)
            row = PlanRow(
                name=plan.name, document=document(plan), paused=paused, archived=False, version=1, created_at=now,
                updated_at=now,
            )
            insert_new(session, row, f"there is a plan {plan.name} already")
            _keep(session, row, actor, reason)
            return _to_record(row)

    def update(self, plan: Plan, *, actor: str = "", reason: str = "") -> PlanRecord:
        """Give a plan another content; runs keep the one that they began with. The same again changes nothing.

        ``InvalidInputError`` without its asset type; ``ConflictError`` where the plan is archived, or where its model
        has versions, or a run is on its way, and the asset type or the task would be another.
        """
        with self._scope.write() as session:
            row = _row(session, plan.name, lock=True)
            before = Plan.model_validate(row.document)
            if row.archived:
                raise ConflictError(f"plan {plan.name} is archived; restore it first", code="plan_archived")
            if before == plan:
                return _to_record(row)
            _check_asset_type(session, plan)
            _check_meaning(session, before, plan)
            row.document, row.version, row.updated_at = document(plan), row.version + 1, utc_now(session)
            _keep(session, row, actor, reason)
            return _to_record(row)

    def set_paused(self, name: str, paused: bool) -> PlanRecord:
        """Pause or resume a plan; to do so again changes nothing."""
        with self._scope.write() as session:
            row = _row(session, name, lock=True)
            if row.paused != paused:
                row.paused, row.updated_at = paused, utc_now(session)
            return _to_record(row)

    def set_archived(self, name: str, archived: bool) -> PlanRecord:
        """Put a plan away, or bring it back; ``ConflictError`` while a run of it is unfinished."""
        with self._scope.write() as session:
            row = _row(session, name, lock=True)
            if row.archived != archived:
                unfinished = _unfinished_run(session, name)
                if unfinished is not None:
                    raise ConflictError(
                        f"plan {name} has an unfinished run, {unfinished}; cancel it or wait for its end",
                        code="run_unfinished",
                    )
                row.archived, row.updated_at = archived, utc_now(session)
            return _to_record(row)

    def delete(self, name: str) -> PlanRecord:
        """Forget a plan that nothing refers to, with its versions; ``ConflictError`` where a run or a version does."""
        with self._scope.write() as session:
            row = _row(session, name, lock=True)
            if session.scalar(select(exists().where(RunRow.plan_name == name))) or _has_versions(session, name):
                raise ConflictError(
                    f"runs or versions refer to plan {name}, so it cannot be deleted; archive it instead",
                    code="plan_in_use",
                )
            gone = _to_record(row)
            session.execute(delete(PlanVersionRow).where(PlanVersionRow.name == name))
            session.delete(row)
            session.flush()
            return gone

    def get(self, name: str) -> PlanRecord:
        """Plan by name; raise ``NotFoundError``."""
        with self._scope.read() as session:
            return _to_record(_row(session, name))

    def hold(self, name: str) -> PlanRecord:
        """Plan by name, which nobody else changes until the transaction ends; raise ``NotFoundError``.

        For a change, or an order, that is made because of what the plan is.
        """
        with self._scope.write() as session:
            return _to_record(_row(session, name, lock=True))

    def list_plans(self, *, archived: bool = False) -> list[PlanRecord]:
        """Plans by name; the archived ones too where asked."""
        wanted = select(PlanRow).order_by(PlanRow.name)
        with self._scope.read() as session:
            return [_to_record(row) for row in session.scalars(wanted) if archived or not row.archived]

    def versions(self, name: str) -> list[PlanVersion]:
        """Every version of a plan, the first one first; raise ``NotFoundError``."""
        wanted = select(PlanVersionRow).where(PlanVersionRow.name == name).order_by(PlanVersionRow.version)
        with self._scope.read() as session:
            _row(session, name)
            return [PlanVersion.of_record(row, plan=row.document) for row in session.scalars(wanted)]


def _check_asset_type(session: Session, plan: Plan) -> None:
    if session.scalar(select(AssetTypeRow.name).where(AssetTypeRow.name == plan.asset_type).limit(1)) is None:
        raise InvalidInputError(f"plan {plan.name} names the asset type {plan.asset_type}, which is not there")


def _check_meaning(session: Session, before: Plan, after: Plan) -> None:
    """What a model is of stays while a run of it is on its way, and once it has versions."""
    old, new = ((plan.asset_type, plan.spec.loss.task) for plan in (before, after))
    if old == new:
        return
    change = f"{old[1]} of {old[0]} into {new[1]} of {new[0]}"
    unfinished = _unfinished_run(session, before.name)
    if unfinished is not None:
        raise ConflictError(
            f"plan {before.name} cannot change from {change} while run {unfinished} is unfinished",
            code="run_unfinished",
        )
    if _has_versions(session, before.name):
        raise ConflictError(
            f"model {before.name} has versions, so its plan cannot change from {change}; create a plan of another name",
            code="plan_in_use",
        )


def _unfinished_run(session: Session, name: str) -> str | None:
    wanted = select(RunRow.run_id).where(RunRow.plan_name == name, RunRow.status.in_(UNFINISHED_STATUSES))
    return session.scalar(wanted.limit(1))


def _has_versions(session: Session, name: str) -> bool:
    return bool(session.scalar(select(exists().where(ModelVersionRow.name == name))))


def _keep(session: Session, row: PlanRow, actor: str, reason: str) -> None:
    session.flush()
    session.add(PlanVersionRow(
        name=row.name, version=row.version, document=row.document, actor=sentence(actor, 120), reason=sentence(reason),
        created_at=row.updated_at,
    ))
    session.flush()


def _row(session: Session, name: str, *, lock: bool = False) -> PlanRow:
    return stored_row(session, PlanRow, name, f"no plan {name}", lock=lock)


def _to_record(row: PlanRow) -> PlanRecord:
    plan = Plan.model_validate(row.document)
    return PlanRecord.of_record(row, plan=plan, notices=plan_notices(plan))
