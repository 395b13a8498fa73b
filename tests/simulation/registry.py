"""The registry of a simulated works: what ``services.registry`` promises, in memory, with a registry that goes away.

It outlives every process, as MLflow's own database does. A run is registered once; the champion's alias is one entry.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from services.contracts.errors import NotFoundError, UnavailableError
from services.contracts.history.run import RoundRecord
from services.contracts.versions.model_version import ModelVersion
from services.registry.labels import CHALLENGER, CHAMPION, PREVIOUS
from tests.simulation.processes import CURRENT, ProcessKilled
from tests.simulation.world import World

DIES = 0.1
"""How often a flow is killed when the registry has its version and it has not heard so, or before it is promoted."""


@dataclass
class Registry:
    """Versions by model and number, aliases by model."""

    world: World
    away: float = 0.0
    until: float = 0.0
    versions: dict[str, list[ModelVersion]] = field(default_factory=dict)
    pointers: dict[str, dict[str, str]] = field(default_factory=dict)
    files: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    _looked: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._draw: random.Random = self.world.stream("registry")
        self._deaths: random.Random = self.world.stream("deaths at the registry")

    def start_run(self, run: Any, asset_type: Any) -> str:
        """Nothing is shown."""
        self._reached()
        return str(run.run_id)

    def end_run(self, run: Any, status: str) -> None:
        """Nothing is shown."""
        self._reached()

    def register(
        self, version: ModelVersion, rounds: Sequence[RoundRecord], report: Any, files: Any
    ) -> ModelVersion:
        """The version with its number; the same run gives the one that it has."""
        self._reached()
        known = self.versions.setdefault(version.name, [])
        for each in known:
            if each.run_id == version.run_id:
                return each
        numbered = version.model_copy(update={"version": str(len(known) + 1)})
        known.append(numbered)
        self.files[(version.name, str(numbered.version))] = dict(files)
        self.pointers.setdefault(version.name, {})[CHALLENGER] = str(numbered.version)
        self.world.note(f"registered {version.name} {numbered.version}", version.weights.tobytes())
        self._may_die("registered", numbered)
        return numbered

    def mlflow_run_id(self, name: str, version: str) -> str:
        """Any name will do."""
        return f"{name}-{version}"

    def promote(
        self, name: str, version: str, *, actor: str = "", reason: str = "", without: Collection[str] = ()
    ) -> ModelVersion:
        """Make a version champion; no plant leaves here."""
        self._reached()
        found = self._version(name, version)
        self._may_die("asked to promote", found)
        pointers = self.pointers[name]
        if pointers.get(CHAMPION) != version:
            if CHAMPION in pointers:
                pointers[PREVIOUS] = pointers[CHAMPION]
            pointers[CHAMPION] = version
            self.world.note(f"champion {name} {version}")
        return found

    def get(self, name: str, version: str) -> ModelVersion:
        """A version by its number."""
        self._reached()
        return self._version(name, version)

    def aliases(self, name: str) -> dict[str, str]:
        """Where the aliases of a model point."""
        self._reached(may_fail=False)
        return dict(self.pointers.get(name, {}))

    def point(self, name: str, alias: str, version: str | None) -> None:
        """Set or take away one alias."""
        self._reached(may_fail=False)
        if version is None:
            self.pointers[name].pop(alias, None)
        else:
            self._version(name, version)
            self.pointers[name][alias] = version

    def _may_die(self, when: str, version: ModelVersion) -> None:
        """Kill the flow that has just done this, by chance, and once for a version."""
        process = CURRENT.get()
        if process is None or process.flow_run_id is None or (when, version.run_id) in self._looked:
            return
        self._looked.add((when, version.run_id))
        if self._deaths.random() < DIES:
            self.world.fault("crash", f"{process.name} {when} version {version.version}")
            process.kill()
            raise ProcessKilled(process.name)

    def _version(self, name: str, version: str) -> ModelVersion:
        for each in self.versions.get(name, ()):
            if each.version == version:
                return each
        raise NotFoundError(f"no version {version} of model {name}")

    def _reached(self, *, may_fail: bool = True) -> None:
        process = CURRENT.get()
        if process is not None:
            process.check()
        if may_fail and self.world.loop.time() < self.until and self._draw.random() < self.away:
            self.world.fault("registry away")
            raise UnavailableError("the registry does not answer", code="registry_unavailable")
