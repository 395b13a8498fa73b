"""Versions to serve and to show: the files from the registry, held to the store, which also says who is champion."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from api.backend.looks import Looks
from services.contracts.errors import ConflictError, NotFoundError, UnavailableError
from services.contracts.keys.signed_documents import signed_digest
from services.contracts.versions.model_version import ModelVersion
from services.registry.labels import CHAMPION
from services.round_store.store import RoundStore

if TYPE_CHECKING:
    from services.registry.mlflow_registry import ModelRegistry

LOG = logging.getLogger("ballast.api")


class CheckedSource:
    """What is served and shown. An alias or a document that somebody changed in the registry serves nothing."""

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
        """The whole version, held to its digest, and to the run and the digest that the store has of it.

        The champion is the store's here too: an export, or a page, shows what serves.
        """
        expected = self._champion(name) if alias_or_version == CHAMPION else None
        found = self._registry.get(name, expected or alias_or_version)
        check_recorded(self._store, found)
        return found

    def _champion(self, name: str) -> str | None:
        try:
            change = self._store.model_versions.alias(name, CHAMPION)
        except UnavailableError as error:
            LOG.warning("the champion of model %s is the registry's, the store does not answer: %s", name, error)
            return None
        return None if change is None else change.version


def check_recorded(store: RoundStore, version: ModelVersion) -> None:
    """``ConflictError`` for a version that is not the one of this number that the store has recorded.

    Its digest in the registry says nothing of that: who writes there makes both fit. Nor does a signature say that it
    is the version of this number, which is not signed. Nothing is said where the store does not answer, or does not
    know the version.
    """
    try:
        recorded = store.model_versions.get(version.name, version.version)
    except (NotFoundError, UnavailableError):
        return
    if version.run_id != recorded.run_id:
        raise ConflictError(
            f"version {version.version} of model {version.name} in the registry is of run {version.run_id}, and run "
            f"{recorded.run_id} made it: somebody wrote to the registry past the service"
        )
    if recorded.signed_sha256 is not None and signed_digest(version.to_document()) != recorded.signed_sha256:
        raise ConflictError(
            f"version {version.version} of model {version.name} in the registry is not what the OEM signed: somebody "
            "wrote to the registry past the service; put it back from a backup"
        )
