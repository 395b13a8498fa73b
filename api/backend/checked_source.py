"""Versions to serve: the files from the registry, and which one is champion from the store."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from api.backend.looks import Looks
from services.contracts.errors import ConflictError, NotFoundError, UnavailableError
from services.contracts.versions.model_version import ModelVersion
from services.registry.labels import CHAMPION
from services.round_store.store import RoundStore

if TYPE_CHECKING:
    from services.registry.mlflow_registry import ModelRegistry

LOG = logging.getLogger("ballast.api")


class CheckedSource:
    """What the predictors are made from. An alias that somebody moved in the registry serves nothing."""

    def __init__(self, store: RoundStore, registry: ModelRegistry) -> None:
        self._store = store
        self._registry = registry
        self._looks = Looks()

    def resolve(self, name: str, alias_or_version: str) -> str:
        """Version number behind an alias or number; the champion is the one that the store has promoted."""
        expected = self._champion(name) if alias_or_version == CHAMPION else None
        try:
            found = self._looks.answer(  # else who diagnoses would wait with a registry that hangs
                f"registry, asked for the {alias_or_version} of model {name},",
                lambda: self._registry.resolve(name, alias_or_version),
            )
        except NotFoundError:
            if expected is None:
                raise
            found = "none"
        if expected is not None and found != expected:
            LOG.warning("the champion of model %s in the registry is %s, the store's is %s", name, found, expected)
        return expected or found

    def get(self, name: str, alias_or_version: str) -> ModelVersion:
        """The whole version, held to its digest, and to the run that the store has of it."""
        found = self._registry.get(name, alias_or_version)
        check_run(self._store, found)
        return found

    def _champion(self, name: str) -> str | None:
        try:
            change = self._store.model_versions.alias(name, CHAMPION)
        except UnavailableError as error:
            LOG.warning("the champion of model %s is the registry's, the store does not answer: %s", name, error)
            return None
        return None if change is None else change.version


def check_run(store: RoundStore, version: ModelVersion) -> None:
    """``ConflictError`` for a version in the place of another one: its number is neither signed nor in its digest.

    Nothing is said where the store does not answer, or does not know the version.
    """
    try:
        registered = store.model_versions.get(version.name, version.version).run_id
    except (NotFoundError, UnavailableError):
        return
    if version.run_id != registered:
        raise ConflictError(
            f"version {version.version} of model {version.name} in the registry is of run {version.run_id}, and run "
            f"{registered} made it: somebody wrote to the registry past the service"
        )
