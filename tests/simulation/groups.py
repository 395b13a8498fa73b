"""Plants whose rows come and go by groups (``min_new_rows``), held to the rows that runs saw of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import TYPE_CHECKING

from services.contracts.history.run import Run
from services.site_agent.vault.dataset import Dataset, Part

if TYPE_CHECKING:
    from tests.simulation.plants import Plant
    from tests.simulation.works import Works


def differ(plant: Plant, now: int, then: int) -> bool:
    """Whether runs see other training rows of one revision than of another; cuts are of those alone."""
    if plant.policy.min_new_rows == 1:
        return now != then
    return _marks(plant.seen(now).train) != _marks(plant.seen(then).train)


def untrue_groups(works: Works, runs: Sequence[Run]) -> Iterator[str]:
    """Versions of a table that differ by fewer rows than its plant says, and runs that count rows beside them."""
    for site, plant in works.plants.items():
        least, revisions = plant.policy.min_new_rows, set[int]()
        for run in runs if least > 1 else ():
            for terms in run.members:
                if terms.site_id == site:
                    revision = works.rows_of[run.run_id][site]
                    revisions.add(revision)
                    rows = len(plant.seen(revision).train)
                    if terms.n_samples != rows:
                        yield f"run {run.run_id[:8]} counts {terms.n_samples} rows of {site}, and may see {rows}"
        for one, other in permutations([_all_marks(plant.seen(each)) for each in sorted(revisions)], 2):
            if 0 < len(one - other) < least:
                yield f"{site} showed versions that differ by {len(one - other)} rows, not by {least} or more"


def _all_marks(dataset: Dataset) -> set[bytes]:
    return _marks(dataset.train.followed_by(dataset.test))


def _marks(table: Part) -> set[bytes]:
    return {mark.tobytes() + bytes([number]) for mark, number in zip(table.marks, table.classes, strict=True)}
