"""All repositories together, on one database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from sqlalchemy import Engine

from services.round_store.asset_types import AssetTypeRepository
from services.round_store.audit import AuditRepository
from services.round_store.model_versions import ModelVersionRepository
from services.round_store.plans import PlanRepository
from services.round_store.runs import RunRepository
from services.round_store.schema import check_schema
from services.round_store.session import Database, SessionProvider, UnitOfWork, make_engine
from services.round_store.sites import SiteRepository
from services.round_store.tokens import TokenRepository


class Repositories:
    """The repositories of one scope."""

    def __init__(self, scope: SessionProvider) -> None:
        self.asset_types = AssetTypeRepository(scope)
        self.audit = AuditRepository(scope)
        self.model_versions = ModelVersionRepository(scope)
        self.plans = PlanRepository(scope)
        self.runs = RunRepository(scope)
        self.sites = SiteRepository(scope)
        self.tokens = TokenRepository(scope)


class RoundStore(Repositories):
    """The store: each call on a repository is one transaction, unless it is made within :meth:`atomic`."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.database = database

    @classmethod
    def open(cls, url: str, *, writable: bool = True) -> Self:
        """Store at a URL; raise ``UnavailableError`` with what to do when it is missing, old or read-only."""
        engine = make_engine(url)
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
        self.database.close()
