"""Aliases of the registry held against the store, which knows who moved them, when and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from services.contracts.history.records import AliasChange
from services.registry import labels

RESTORED: Final = "registry.alias_restored"
"""Action in the audit trail: an alias that somebody moved in the registry was put back."""


class AliasRecords(Protocol):
    """What the store knows of versions and aliases."""

    def alias(self, name: str, alias: str) -> AliasChange | None:
        """Last change of an alias."""
        ...

    def numbers(self, name: str) -> Sequence[str]:
        """Numbers of the versions of a model, the newest first."""
        ...


class Aliases(Protocol):
    """What the registry has."""

    def aliases(self, name: str) -> dict[str, str]:
        """Where the aliases of a model point."""
        ...


@dataclass(frozen=True)
class MovedAlias:
    """An alias that points elsewhere than the store says; None: nowhere."""

    model: str
    alias: str
    expected: str | None
    found: str | None

    def __str__(self) -> str:
        return (
            f"the alias {self.alias} of model {self.model} was moved by hand to {_shown(self.found)}; "
            f"the store says {_shown(self.expected)}"
        )


def moved_aliases(records: AliasRecords, registry: Aliases, name: str) -> tuple[MovedAlias, ...]:
    """Aliases of a model that somebody moved in the registry; only those that the store can judge.

    The champion and the one before it are as they were recorded with the promotion. The challenger is the newest
    version that the store knows: one that it does not know yet is being registered at this moment.
    """
    found = registry.aliases(name)
    moved = []
    champion, before = records.alias(name, labels.CHAMPION), records.alias(name, labels.PREVIOUS)
    if champion is not None and champion.version is not None:
        moved.append(MovedAlias(name, labels.CHAMPION, champion.version, found.get(labels.CHAMPION)))
    if before is not None:
        moved.append(MovedAlias(name, labels.PREVIOUS, before.version, found.get(labels.PREVIOUS)))
    known = records.numbers(name)
    challenger = found.get(labels.CHALLENGER)
    if known and (challenger is None or challenger in known):
        moved.append(MovedAlias(name, labels.CHALLENGER, known[0], challenger))
    return tuple(each for each in moved if each.expected != each.found)


def _shown(version: str | None) -> str:
    return "no version" if version is None else f"version {version}"
