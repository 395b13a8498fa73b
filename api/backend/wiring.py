"""Builds what the API and the commands work with, from the settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from api.backend.disk_space import sqlite_file
from services.contracts.errors import UnavailableError
from services.process.settings import Settings
from services.round_store.database.failures import CANNOT_OPEN, UPGRADE_COMMAND
from services.round_store.database.schema import check_schema
from services.round_store.database.session import Database, make_engine
from services.round_store.store import RoundStore

if TYPE_CHECKING:
    from api.backend.checked_source import CheckedSource
    from api.backend.looks import Looks
    from api.backend.nats_users import NatsUsers
    from api.backend.pseudonyms import AnyContract, Pseudonyms
    from api.backend.version_cache import VersionCache
    from services.identity.oidc import OidcVerifier
    from services.identity.service_keys import ServiceKeys
    from services.predictor.cache import PredictorCache
    from services.registry.mlflow_registry import ModelRegistry

@dataclass(frozen=True)
class Backend:
    """The services behind both faces. Safe to share between threads. Open it with :func:`open_backend`."""

    settings: Settings
    store: RoundStore

    @cached_property
    def registry(self) -> ModelRegistry:
        """The registry; here and below, what most commands do not need is imported where it is asked for."""
        from services.registry.mlflow_registry import ModelRegistry

        return ModelRegistry(self.settings.tracking_uri, self.settings.artifact_root)

    @cached_property
    def predictors(self) -> PredictorCache:
        """The versions that were asked for, ready to diagnose."""
        from services.predictor.cache import PredictorCache

        return PredictorCache(self.checked, abstain_below_radius=self.settings.api.abstain_below_radius)

    @cached_property
    def checked(self) -> CheckedSource:
        """Whole versions, held to what the store has of them."""
        from api.backend.checked_source import CheckedSource

        return CheckedSource(self.store, self.registry)

    @cached_property
    def versions(self) -> VersionCache:
        """Whole versions and reports, for pages."""
        from api.backend.version_cache import VersionCache

        return VersionCache(lambda: self.checked, lambda: self.registry)

    @cached_property
    def pseudonyms(self) -> Pseudonyms:
        """Names of the sites for callers who may not know which plants they are."""
        from api.backend.pseudonyms import Pseudonyms
        from services.identity.service_keys import PSEUDONYMS

        return Pseudonyms(self.service_keys.get(PSEUDONYMS))

    @cached_property
    def service_keys(self) -> ServiceKeys:
        """The keys that all API processes share, held to what the store knows of them."""
        from services.identity.service_keys import ServiceKeys

        return ServiceKeys(self.settings.home, self.store.service_keys)

    @cached_property
    def looks(self) -> Looks:
        """Looks at store and registry that have an end."""
        from api.backend.looks import Looks

        return Looks()

    @cached_property
    def nats_users(self) -> NatsUsers:
        """The users of the embedded NATS server; nobody's business where the settings name a server of their own."""
        from api.backend.nats_users import NatsUsers
        from services.bus.configuration import BusFiles

        files = None if self.settings.nats.servers else BusFiles(self.settings.bus_folder)
        return NatsUsers(files, self.store.sites)

    @cached_property
    def oidc(self) -> OidcVerifier | None:
        """Who checks the tokens of the issuer; None without ``[oidc]`` in the settings."""
        from services.identity.oidc import OidcVerifier

        return None if self.settings.oidc is None else OidcVerifier(self.settings.oidc)

    def named(self, model: str, contract: AnyContract, *, real: bool) -> AnyContract:
        """Contract with the sites' real names, or with their pseudonyms in a model.

        Its reasons may name any site that was ever enrolled, so the pseudonyms of all of them are needed.
        """
        if real:
            return contract
        return self.pseudonyms.applied(model, contract, [site.site_id for site in self.store.sites.list_sites()])

    def check_store(self) -> None:
        """Raise ``UnavailableError`` with what to do when the database is missing, old or read-only."""
        try:
            check_schema(self.store.engine)
        except UnavailableError as error:
            file = sqlite_file(self.settings.database)
            if error.code == CANNOT_OPEN and file is not None and not file.exists():
                todo = f"`{UPGRADE_COMMAND}` makes it, or give the right home folder with --home or BALLAST_HOME"
                raise UnavailableError(f"{error}; {todo}", code=error.code) from error
            raise


@contextmanager
def open_backend(settings: Settings | None = None) -> Iterator[Backend]:
    """Everything below the faces, closed at the end. Connects to nothing yet: ask ``check_store`` for the database."""
    settings = settings or Settings.load()
    store = RoundStore(Database(make_engine(settings.database)))
    try:
        yield Backend(settings, store)
    finally:
        store.close()
