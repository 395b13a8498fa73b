"""Many seeds, some at a time: what happened, what was broken, and the one line that plays a seed again."""

from __future__ import annotations

import gc
import json
import multiprocessing
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.simulation.works import Outcome, simulate

PROGRESS_SECONDS = 30.0


@dataclass
class Soak:
    """What came of all seeds so far."""

    seeds: int = 0
    steps: int = 0
    rounds: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    broken: dict[int, tuple[str, ...]] = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, outcome: Outcome) -> None:
        """Count a seed in."""
        self.seeds += 1
        self.steps += outcome.steps
        self.rounds += outcome.rounds
        self.faults.update(outcome.faults)
        self.ends.update(end.partition(":")[0] for end in outcome.ends)
        if outcome.broken:
            self.broken[outcome.seed] = outcome.broken

    def line(self) -> str:
        """All on one line."""
        return (
            f"{self.seeds} seeds, {sum(self.faults.values())} faults, {self.steps} steps, {self.rounds} rounds, "
            f"{sum(self.ends.values())} runs, {len(self.broken)} broken, {self.seconds:.0f} s"
        )

    def document(self) -> dict[str, Any]:
        """All as JSON has it."""
        return {
            "seeds": self.seeds, "steps": self.steps, "rounds": self.rounds, "seconds": round(self.seconds, 1),
            "faults": dict(sorted(self.faults.items())), "ends": dict(self.ends),
            "broken": {str(seed): list(what) for seed, what in sorted(self.broken.items())},
        }


def settle() -> None:
    """Look for garbage in what the seeds make alone, and seldom: what the libraries hold (a million objects) stays."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def outcomes(seeds: Iterable[int], jobs: int) -> Iterator[Outcome]:
    """Run the seeds, ``jobs`` at a time."""
    settle()
    if jobs <= 1:
        yield from map(simulate, seeds)
        return
    with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=500) as pool:
        yield from pool.imap_unordered(simulate, seeds)


def soak(first: int, count: int, jobs: int, json_file: Path | None = None) -> Soak:
    """Run ``count`` seeds from ``first`` on; say how it goes, and write it down."""
    found, began, told = Soak(), time.monotonic(), time.monotonic()
    for outcome in outcomes(range(first, first + count), jobs):
        found.add(outcome)
        found.seconds = time.monotonic() - began
        for what in outcome.broken:
            print(f"BROKEN {what}\n  python -m tests.simulation --seed {outcome.seed}", flush=True)
        if time.monotonic() - told > PROGRESS_SECONDS:
            told = time.monotonic()
            print(found.line(), flush=True)
            if json_file is not None:
                json_file.write_text(json.dumps(found.document(), indent=1) + "\n")
    print(found.line())
    print("faults: " + ", ".join(f"{kind} {count}" for kind, count in sorted(found.faults.items())))
    print("runs: " + ", ".join(f"{end} {count}" for end, count in sorted(found.ends.items())))
    if json_file is not None:
        json_file.write_text(json.dumps(found.document(), indent=1) + "\n")
    return found
