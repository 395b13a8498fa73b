"""All repositories together, on one database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Self

from sqlalchemy import Engine

from services.round_store.database.changes import ChangeMark
from services.round_store.database.schema import check_schema
from services.round_store.database.session import BUSY_SECONDS, Database, SessionProvider, UnitOfWork, make_engine

if TYPE_CHECKING:
    from services.round_store.access.enrolment_codes import EnrolmentCodeRepository
    from services.round_store.access.service_keys import ServiceKeyRepository
    from services.round_store.access.sessions import SessionRepository
    from services.round_store.access.tokens import TokenRepository
    from services.round_store.operation.audit import AuditRepository
    from services.round_store.operation.events import EventRepository
    from services.round_store.operation.outcomes import OutcomeRepository
    from services.round_store.operation.overview import OverviewRepository
    from services.round_store.operation.retention import RetentionRepository
    from services.round_store.operation.webhooks import WebhookRepository
    from services.round_store.plans.asset_types import AssetTypeRepository
    from services.round_store.plans.plans import PlanRepository
    from services.round_store.plants.leavings import LeavingRepository
    from services.round_store.plants.sites import SiteRepository
    from services.round_store.runs.model_versions import ModelVersionRepository
    from services.round_store.runs.runs import RunRepository


class Repositories:
    """The repositories of one scope. Each is imported when it is first asked for: a command needs two or three."""

    def __init__(self, scope: SessionProvider) -> None:
        self._scope = scope

    @cached_property
    def asset_types(self) -> AssetTypeRepository:
        """Asset types, with their versions."""
        from services.round_store.plans.asset_types import AssetTypeRepository

        return AssetTypeRepository(self._scope)

    @cached_property
    def audit(self) -> AuditRepository:
        """The audit trail."""
        from services.round_store.operation.audit import AuditRepository

        return AuditRepository(self._scope)

    @cached_property
    def enrolment_codes(self) -> EnrolmentCodeRepository:
        """Codes by which plants enrol."""
        from services.round_store.access.enrolment_codes import EnrolmentCodeRepository

        return EnrolmentCodeRepository(self._scope)

    @cached_property
    def events(self) -> EventRepository:
        """What happened, for who follows it."""
        from services.round_store.operation.events import EventRepository

        return EventRepository(self._scope)

    @cached_property
    def leavings(self) -> LeavingRepository:
        """Plants that are unlearned."""
        from services.round_store.plants.leavings import LeavingRepository

        return LeavingRepository(self._scope)

    @cached_property
    def model_versions(self) -> ModelVersionRepository:
        """Versions, and where their aliases pointed."""
        from services.round_store.runs.model_versions import ModelVersionRepository

        return ModelVersionRepository(self._scope)

    @cached_property
    def outcomes(self) -> OutcomeRepository:
        """What repeated requests were answered."""
        from services.round_store.operation.outcomes import OutcomeRepository

        return OutcomeRepository(self._scope)

    @cached_property
    def overview(self) -> OverviewRepository:
        """Many runs, versions and rounds at once."""
        from services.round_store.operation.overview import OverviewRepository

        return OverviewRepository(self._scope)

    @cached_property
    def plans(self) -> PlanRepository:
        """Plans, with their versions."""
        from services.round_store.plans.plans import PlanRepository

        return PlanRepository(self._scope)

    @cached_property
    def retention(self) -> RetentionRepository:
        """What is old enough to be forgotten."""
        from services.round_store.operation.retention import RetentionRepository

        return RetentionRepository(self._scope)

    @cached_property
    def runs(self) -> RunRepository:
        """Runs, with their leases, rounds and drafts."""
        from services.round_store.runs.runs import RunRepository

        return RunRepository(self._scope)

    @cached_property
    def service_keys(self) -> ServiceKeyRepository:
        """What is known of the keys that all API processes share."""
        from services.round_store.access.service_keys import ServiceKeyRepository

        return ServiceKeyRepository(self._scope)

    @cached_property
    def sessions(self) -> SessionRepository:
        """Who is signed in to the console."""
        from services.round_store.access.sessions import SessionRepository

        return SessionRepository(self._scope)

    @cached_property
    def sites(self) -> SiteRepository:
        """Enrolled plants."""
        from services.round_store.plants.sites import SiteRepository

        return SiteRepository(self._scope)

    @cached_property
    def tokens(self) -> TokenRepository:
        """API tokens."""
        from services.round_store.access.tokens import TokenRepository

        return TokenRepository(self._scope)

    @cached_property
    def webhooks(self) -> WebhookRepository:
        """Addresses that events are sent to."""
        from services.round_store.operation.webhooks import WebhookRepository

        return WebhookRepository(self._scope)


class RoundStore(Repositories):
    """The store: each call on a repository is one transaction, unless it is made within :meth:`atomic`."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.database = database
        self.changes = ChangeMark(database.engine.url)

    @classmethod
    def open(cls, url: str, *, writable: bool = True, busy_seconds: float = BUSY_SECONDS) -> Self:
        """Store at a URL; raise ``UnavailableError`` with what to do when it is missing, old or read-only.

        A SQLite writer waits ``busy_seconds`` for the one before it.
        """
        engine = make_engine(url, busy_seconds=busy_seconds)
        try:
            check_schema(engine, writable=writable)
        except Exception:
            engine.dispose()
            raise
        return cls(Database(engine))

    @property
    def engine(self) -> Engine:
        """Engine below the store."""
        return self.database.engine

    @contextmanager
    def atomic(self) -> Iterator[Repositories]:
        """Repositories whose calls are one transaction: all of them are committed at the end, or none.

        Do not await or wait for others inside: on SQLite no one else can write meanwhile. Where the answer to the
        commit is lost it is asked whether it stands; ``UnavailableError`` with ``COMMIT_UNKNOWN`` where nobody says so.
        """
        with self.database.write_for_certain() as session:
            yield Repositories(UnitOfWork(session))

    def close(self) -> None:
        """Close all connections."""
        self.changes.close()
        self.database.close()
