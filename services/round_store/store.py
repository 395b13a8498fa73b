"""All repositories together, on one database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from sqlalchemy import Engine

from services.round_store.asset_types import AssetTypeRepository
from services.round_store.audit import AuditRepository
from services.round_store.changes import ChangeMark
from services.round_store.enrolment_codes import EnrolmentCodeRepository
from services.round_store.events import EventRepository
from services.round_store.leavings import LeavingRepository
from services.round_store.model_versions import ModelVersionRepository
from services.round_store.outcomes import OutcomeRepository
from services.round_store.overview import OverviewRepository
from services.round_store.plans import PlanRepository
from services.round_store.retention import RetentionRepository
from services.round_store.runs import RunRepository
from services.round_store.schema import check_schema
from services.round_store.service_keys import ServiceKeyRepository
from services.round_store.session import BUSY_SECONDS, Database, SessionProvider, UnitOfWork, make_engine
from services.round_store.sessions import SessionRepository
from services.round_store.sites import SiteRepository
from services.round_store.tokens import TokenRepository
from services.round_store.webhooks import WebhookRepository


class Repositories:
    """The repositories of one scope."""

    def __init__(self, scope: SessionProvider) -> None:
        self.asset_types = AssetTypeRepository(scope)
        self.audit = AuditRepository(scope)
        self.enrolment_codes = EnrolmentCodeRepository(scope)
        self.events = EventRepository(scope)
        self.leavings = LeavingRepository(scope)
        self.model_versions = ModelVersionRepository(scope)
        self.outcomes = OutcomeRepository(scope)
        self.overview = OverviewRepository(scope)
        self.plans = PlanRepository(scope)
        self.retention = RetentionRepository(scope)
        self.runs = RunRepository(scope)
        self.service_keys = ServiceKeyRepository(scope)
        self.sessions = SessionRepository(scope)
        self.sites = SiteRepository(scope)
        self.tokens = TokenRepository(scope)
        self.webhooks = WebhookRepository(scope)


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

        Do not await or wait for others inside: on SQLite no one else can write meanwhile.
        """
        with self.database.write() as session:
            yield Repositories(UnitOfWork(session))

    def close(self) -> None:
        """Close all connections."""
        self.changes.close()
        self.database.close()
