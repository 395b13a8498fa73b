"""How the test files are shared out among the processes of pytest-xdist: the longest first, some of them together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

TOGETHER = ("tests/journeys/", "tests/services/plant_simulator/")
"""Folders whose files go to one process: they share servers, or plants, that take longer to make than a test takes."""

LONGEST = (
    "tests/journeys/", "tests/models/estimators/", "tests/services/registry/test_other_stores.py",
    "tests/services/site_agent/test_without_scipy.py", "tests/browser/", "tests/attacks/", "tests/simulation/",
    "tests/benchmarks/", "tests/models/worst_case/", "tests/models/methods/", "tests/services/site_agent/connection/",
    "tests/api/cli/", "tests/flows/", "tests/packaging/", "tests/oracles/", "tests/mutants/", "tests/api/",
    "tests/models/", "tests/services/",
)
"""Where the time goes, the longest first: what is begun last should be short, so that all processes end together."""


def share(test: str) -> str:
    """What a test goes with: its folder where the folder stays together, else its file."""
    file = test.split("::", 1)[0]
    return next((folder for folder in TOGETHER if file.startswith(folder)), file)


def rank(share: str) -> int:
    """Place of a share in the order of :data:`LONGEST`; after all of them where it is not named."""
    return next((place for place, start in enumerate(LONGEST) if share.startswith(start)), len(LONGEST))


class LongestFirst(LoadFileScheduling):  # type: ignore[misc]  # pytest-xdist says no types
    """Hands each process that has little left to do the longest share that waits."""

    def _split_scope(self, nodeid: str) -> str:
        return share(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        self.workqueue.move_to_end(min(self.workqueue, key=rank), last=False)
        super()._assign_work_unit(node)
