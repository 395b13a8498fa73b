"""What must hold after every fault, and when every run has ended, as the store and the ledgers say it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from services.contracts.history.run import Run
from services.contracts.machines.asset_type import AssetType
from services.registry.labels import CHAMPION
from services.round_store.store import RoundStore
from services.site_agent.outgoing.ledger_check import read_ledger
from tests.simulation.recount import recounted

FINAL = ("completed", "failed", "cancelled")
OWN_FAULTS = ("cannot be committed", "recorded already", "has ended already", "Traceback")
"""Words of failures by which a run would fall over what the service itself had done."""


class Watch:
    """Looks at a store and at the ledgers of plants; what is broken stands in ``broken``."""

    def __init__(self, store: RoundStore, ledgers: Mapping[str, Path]) -> None:
        self.store, self.ledgers = store, ledgers
        self.broken: list[str] = []
        self.failures: list[str] = []
        self.ends: Counter[str] = Counter()
        self.recounted = 0
        self._rounds: dict[tuple[str, int], str] = {}
        self._ended: dict[str, tuple[str, str]] = {}
        self._trail = 0

    @property
    def rounds(self) -> int:
        """Rounds that were committed."""
        return len(self._rounds)

    def look(self) -> None:
        """Whatever a fault may have broken. A run that ended is read for the last time in the look that finds it so."""
        runs = self.store.runs.list_runs(limit=1000)
        for run in runs:
            settled = run.run_id in self._ended
            self._check_end(run)
            if not settled:
                self._check_rounds(self.store.runs.get_run(run.run_id))
        report = self.store.audit.verify_chain()
        if not report.ok:
            self.breach(f"audit: {report.problem}")
        if report.events < self._trail:
            self.breach(f"audit: the trail got shorter, {self._trail} to {report.events}")
        self._trail = report.events

    def breach(self, what: str) -> None:
        """Note what is broken, once."""
        if what not in self.broken:
            self.broken.append(what)

    def _check_end(self, run: Run) -> None:
        before = self._ended.get(run.run_id)
        if before is not None and before != (run.status, run.reason):
            self.breach(f"runs: {run.run_id[:8]} had ended {before}, and is {run.status} ({run.reason})")
        if run.status not in FINAL or before is not None:
            return
        self._ended[run.run_id] = (run.status, run.reason)
        self.ends[run.status] += 1
        if not run.reason.strip():
            self.breach(f"runs: {run.run_id[:8]} ended {run.status} without a reason")
        if run.status == "failed":
            self.failures.append(f"run {run.run_id[:8]} of {run.plan.name}: {run.reason}")
            if any(word in run.reason for word in OWN_FAULTS):
                self.breach(f"runs: {run.run_id[:8]} failed over the service itself: {run.reason}")
        if run.excluded:
            names = ", ".join(each.site_id for each in run.excluded)
            self.breach(f"liars: {names} was honest, run {run.run_id[:8]} left it out")

    def _check_rounds(self, run: Run) -> None:
        known = {number: said for (run_id, number), said in self._rounds.items() if run_id == run.run_id}
        # Read after the run's own row: what that counts must stand there, and more may by now.
        seen = {record.round: record.model_dump_json() for record in self.store.runs.get_rounds(run.run_id)}
        for number, said in known.items():
            if seen.get(number) != said:
                self.breach(f"rounds: round {number} of run {run.run_id[:8]} was committed, and is gone or another")
        if sorted(seen) != list(range(1, len(seen) + 1)):
            self.breach(f"rounds: those of run {run.run_id[:8]} do not follow one another")
        if len(seen) < run.rounds or (run.status in FINAL and len(seen) != run.rounds):
            self.breach(f"rounds: run {run.run_id[:8]} counts {run.rounds} rounds, {len(seen)} stand there")
        self._rounds |= {(run.run_id, number): said for number, said in seen.items()}

    def at_the_end(
        self, frames: Mapping[str, bytes], asset_type: AssetType, pointed: Mapping[str, str | None]
    ) -> None:
        """Whatever the whole may have broken; ``pointed`` is the champion of each model as the registry has it."""
        self.look()
        runs = self.store.runs.list_runs(limit=1000)
        told = {site: self._ledger(site, path) for site, path in self.ledgers.items()}
        for run in runs:
            if run.status not in FINAL:
                self.breach(f"runs: {run.run_id[:8]} of {run.plan.name} is {run.status} and does not end")
            records = self.store.runs.get_rounds(run.run_id)
            for record in records:
                for answer in record.answers:
                    if answer.status == "accepted" and answer.payload_sha256 not in told[answer.site_id]:
                        where = f"round {record.round} of run {run.run_id[:8]}"
                        self.breach(f"ledger: {where} counts what {answer.site_id} never wrote down")
            if run.plan.reveal == "each site" and run.sites:
                count, problem = recounted(run, records, frames, asset_type)
                self.recounted += count
                if problem:
                    self.breach(f"rounds: {problem}")
        self._check_versions(runs, pointed)
        ordered = len(self.store.audit.list_events(action="plan.trigger", limit=1000))
        if ordered != len(runs):
            self.breach(f"audit: {len(runs)} runs were ordered, {ordered} orders stand in the trail")

    def _ledger(self, site: str, path: Path) -> set[str]:
        for problem in read_ledger(path).problems:
            self.breach(f"ledger: {site}: {problem}")
        return {json.loads(line)["sha256"] for line in path.read_bytes().splitlines() if line.endswith(b"}")}

    def _check_versions(self, runs: list[Run], pointed: Mapping[str, str | None]) -> None:
        """One champion, the one that the store says; one version for each completed run, none for one that failed."""
        for name in {run.plan.name for run in runs}:
            recorded = self.store.model_versions.alias(name, CHAMPION)
            expected = None if recorded is None else recorded.version
            if expected != pointed.get(name):
                self.breach(f"champion: the store says version {expected} of {name}, the registry {pointed.get(name)}")
            versions = self.store.model_versions.list_versions(name, limit=1000)
            made = Counter(version.run_id for version in versions)
            for run_id, count in made.items():
                if count > 1:
                    self.breach(f"versions: run {run_id[:8]} has {count} versions")
            for run in runs:
                if run.plan.name == name and run.status == "completed" and not made[run.run_id]:
                    self.breach(f"versions: completed run {run.run_id[:8]} has none")
                if expected is not None and run.status == "failed" and made[run.run_id]:
                    champion = next(each for each in versions if each.run_id == run.run_id).version == expected
                    if champion:
                        self.breach(f"champion: version {expected} of {name} is of run {run.run_id[:8]}, which failed")
