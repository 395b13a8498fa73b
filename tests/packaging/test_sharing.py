"""The order in which the processes of the tests take the files: nothing named is gone, and the longest comes first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.sharing import LONGEST, TOGETHER, LongestFirst, rank, share

ROOT = Path(__file__).parents[2]


class Process:
    """A process of pytest-xdist, as far as it is told what to run."""

    def __init__(self) -> None:
        self.told: list[int] = []

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        self.told += indices


@pytest.mark.parametrize("name", [*LONGEST, *TOGETHER])
def test_what_is_named_is_there(name: str) -> None:
    assert (ROOT / name).is_dir() if name.endswith("/") else (ROOT / name).is_file()


def test_a_folder_stays_together_and_other_files_are_shares_of_their_own() -> None:
    assert share("tests/journeys/test_privacy.py::test_a[x::y]") == "tests/journeys/"
    assert share("tests/flows/test_targets.py::test_a[x::y]") == "tests/flows/test_targets.py"


def test_the_longest_named_place_counts_first_and_the_rest_keep_their_order() -> None:
    shares = ["tests/migrations/test_run.py", "tests/models/cuts/test_cut.py", "tests/api/test_roles.py",
              "tests/models/estimators/test_drfl.py", "tests/journeys/"]
    assert sorted(shares, key=rank) == [shares[4], shares[3], shares[2], shares[1], shares[0]]


def test_a_process_gets_the_longest_share_that_waits() -> None:
    tests = ["tests/migrations/test_a.py::test_1", "tests/journeys/test_b.py::test_1", "tests/models/test_c.py::test_1"]
    scheduler, node = LongestFirst.__new__(LongestFirst), Process()
    scheduler.workqueue = OrderedDict((share(test), {test: False}) for test in tests)
    scheduler.assigned_work, scheduler.registered_collections = {}, {node: tests}
    for _ in tests:
        scheduler._assign_work_unit(node)
    assert node.told == [1, 2, 0]
