"""A site agent that lies: ``python liar.py run --config site.toml``, which a test starts in the place of the command.

It answers as the true agent does, signed and written into the ledger, but what it says of its rows is falsified on the
way to the door. Each run that it hears of gets the next lie; ``lies.jsonl`` beside its settings says which.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from models.basics import FloatArray
from models.methods.guard import Guard
from models.methods.row_account import Accounted
from services.contracts.wire.messages import Task
from services.site_agent.cli import main
from services.site_agent.door.row_answers import RowAnswers
from services.site_agent.vault.dataset import Dataset

Arrays = dict[str, FloatArray]
LIES: dict[str, Callable[[Arrays], Arrays]] = {
    "negative risk": lambda said: said | {"risk": -said["risk"]},
    "slope flipped": lambda said: said | {"slope": -said["slope"]},
    "risk too low": lambda said: said | {"risk": 0.7 * said["risk"], "cut_height": 0.7 * said["cut_height"]},
    "broken numbers": lambda said: said | {"slope": np.full_like(said["slope"], np.nan)},
    "risk too low at the end": lambda said: said,
}
FIRST_LIE = 2
"""Round from which on it lies: in the first round every true risk is the same."""


def falsify(folder: Path) -> None:
    """Make every site of this process lie."""
    told: dict[str, str] = {}
    honest = RowAnswers._round

    def lying(self: RowAnswers, task: Task, dataset: Dataset, guard: Guard) -> Accounted:
        said = honest(self, task, dataset, guard)
        if task.run_id not in told:
            told[task.run_id] = list(LIES)[len(told) % len(LIES)]
            with (folder / "lies.jsonl").open("a") as file:
                file.write(json.dumps([task.run_id, told[task.run_id]]) + "\n")
        told_arrays = LIES[told[task.run_id]](said.arrays) if task.round >= FIRST_LIE else said.arrays
        return replace(said, arrays=told_arrays)

    honest_end = RowAnswers.found

    def lying_end(self: RowAnswers, task: Task, dataset: Dataset, guard: Guard) -> Accounted:
        said = honest_end(self, task, dataset, guard)
        if task.kind != "evaluate" or told.get(task.run_id) != "risk too low at the end" or "risk" not in said.arrays:
            return said
        return replace(said, arrays=said.arrays | {"risk": 0.5 * said.arrays["risk"]})

    RowAnswers._round, RowAnswers.found = lying, lying_end


if __name__ == "__main__":
    falsify(Path(sys.argv[sys.argv.index("--config") + 1]).parent)
    sys.exit(main())
