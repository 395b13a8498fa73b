"""Which versions of a model there are, asked one by one."""

from __future__ import annotations

from collections.abc import Collection, Container

from services.registry.mlflow_store import MlflowStore


class StandingVersions(Container[str]):
    """Numbers of a model's versions that there are, but for some; of thousands those alone are asked for that matter.

    ``without``: those with a plant that left, which are deleted or about to be.
    """

    def __init__(self, store: MlflowStore, name: str, without: Collection[str]) -> None:
        self._store, self._name, self._without = store, name, frozenset(without)

    def __contains__(self, number: object) -> bool:
        """Whether the version is there; one query."""
        return number not in self._without and self._store.entry_if_there(self._name, str(number)) is not None
