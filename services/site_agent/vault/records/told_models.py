"""Of how many models a run is told counts, errors and risks, about how many problems: as many as honest runs have.

Such scalars are no vectors, so no account holds them. But a count at a plane says how many rows lie beyond it, and a
sum of absolute errors bends where a row lies: whoever asks at enough planes puts the rows together again, steep or not,
under masks or not. What was told stands in the record of the answers, so neither a restart of the agent nor runs that
take turns begin the count anew.

So are problems: a radius by confidence, and whether the rows lie in a polytope, are answers about the plant's own rows,
under no mask. A run that is refused counts among the day's as one that is answered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from typing import Final

from models.basics import FloatArray
from services.contracts.problems.tuning import MOST_CANDIDATES
from services.contracts.problems.tuning_task import TuningTask
from services.contracts.wire.messages import RefusalCode, Task

CALIBRATED: Final = 3
"""A run has one model; one more where it was trained on after a conviction, and one to spare."""
EVALUATED: Final = 16
"""The same where a plant more is convicted at each end; and twice where the interval is not known at first."""
SCORED: Final = MOST_CANDIDATES
"""Of a fold: each candidate once. A race that is run anew has the same models, or the rest of these."""
PROBLEMS: Final = 4
"""A run joins with the plan's, tunes from the radius of the join, and trains with what was chosen; one to spare."""
EXCHANGES: Final = 3
"""In which a fold is scored: all that are left in the race at once, so that no model is chosen by what was counted at
another; once more where a killed coordinator races anew, and one to spare."""

REFUSED: Final = 2
"""Questions of a run that are refused for what may be a matter of the rows: honest runs have none. Then all are."""
OF_THE_ROWS: Final[frozenset[RefusalCode]] = frozenset({"bad_task", "internal_error"})
"""Those that honest runs have none of. That an answer would isolate a row is of the rows too, and counted apart."""
ISOLATING: Final = 4
"""Questions of a run that are refused because the answer would isolate a row; then the run gets no vectors, but what
else it asks. A method without a second answer (``wafl``) has up to 15 in an honest run; as many end well with 4."""
ISOLATING_IN_ALL: Final = 8
"""Different ones of a method in all runs about one version of the rows: each says between which of the questions so
far a row lies, so with q of them they tell some ``8 log2(q)`` bits."""

CountModels = Callable[[str, Collection[bytes], int], None]
"""Writes down of which models a part of the rows is told something; refuses where a run has more than so many."""


def check_told(task: Task, count: CountModels) -> None:
    """Refuse a task that asks about one problem or model, or one deal of the rows, more than its run has."""
    check_problem_count(task, count)
    if task.kind == "evaluate":
        _check_evaluated(task, count)
    if isinstance(task.tuning, TuningTask):
        _check_tuned(task, task.tuning, count)


def check_problem_count(task: Task, count: CountModels) -> None:
    """Refuse a task about one problem more than its run has."""
    count("problem", [_digest(task.spec.model_dump_json())], PROBLEMS)


def question_digest(task: Task) -> bytes:
    """What a task asks of the rows, whichever masks and round it is for."""
    asked = task.model_copy(update={"masking": None, "arrays": {}, "round": 0, "site_id": "", "run_id": ""})
    names = sorted(task.arrays)
    return _digest(f"{asked.model_dump_json()} {names}", *(task.arrays[name] for name in names))


def _check_evaluated(task: Task, count: CountModels) -> None:
    """Held-out rows: a model, a problem or an interval of residuals."""
    asked = _digest(task.spec.model_dump_json(), task.arrays.get("weights"), task.arrays.get("interval"))
    if "calibration" in task.arrays:
        count("calibration", [asked], CALIBRATED)
    else:
        count("evaluation", [asked], EVALUATED)


def _check_tuned(task: Task, asked: TuningTask, count: CountModels) -> None:
    """Folds of a tuning: a deal of the rows, and an exchange or a model of a fold."""
    count("deal", [f"{asked.folds} {asked.seed}".encode()], 1)
    terms = [repr((part.radius, part.label_flip_cost, asked.lifts[part.lift])) for part in asked.parts]
    count("candidate", {_digest(each) for each in terms}, SCORED)
    if not asked.scored:
        return
    models: dict[int, set[bytes]] = {}
    for j, part in enumerate(asked.parts):
        of_part = _digest(repr(asked.lifts[part.lift]), task.arrays.get(f"weights_{j}"))
        models.setdefault(part.fold, set()).add(of_part)
    for fold, found in sorted(models.items()):
        count(f"exchange {fold}", [hashlib.sha256(b"".join(sorted(found))).digest()], EXCHANGES)
        count(f"fold {fold}", found, SCORED)


def _digest(problem: str, *arrays: FloatArray | None) -> bytes:
    """SHA-256 of a problem in words and of what is asked about it."""
    found = hashlib.sha256(problem.encode())
    for array in arrays:
        found.update(b"" if array is None else array.tobytes())
    return found.digest()
