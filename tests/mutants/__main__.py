"""Apply each break to a copy of the tree, run the tests that must notice, and say which breaks were caught.

``python -m tests.mutants [--jobs 2] [--only WORD ...]``: exit code 0 where every break was caught.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path

from tests.mutants.breaks import Break, BreakError, load_breaks

ROOT = Path(__file__).parents[2]
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv*", ".ballast", "__pycache__", ".*_cache", ".hypothesis", "build", "dist", "*.egg-info"
)
TIMEOUT_SECONDS = 900.0
"""A break that makes the tests hang is no break that they notice."""
SHIFT = 20
"""Added to pytest's exit code: a process that ends by an accident of its own ends with 1."""
OUTCOMES = {SHIFT: "SURVIVED", SHIFT + 1: "caught"}
"""What the exit code says of a break; any other code says that the tests could not be run."""
PRELOADED = ("pytest", "hypothesis.extra.numpy", "numpy", "scipy.optimize", "pydantic", "cvxpy", "sqlalchemy", "nkeys")
"""Packages that most tests need: imported once, and there for every break, whose tests run in a fork."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="breaks at a time (2)")
    parser.add_argument("--only", nargs="*", default=[], help="only breaks with one of these words in name or file")
    parser.add_argument("--list", action="store_true", help="name the breaks and stop")
    parser.add_argument("--trust", action="store_true", help="take it that the tests pass on the tree as it is")
    chosen = parser.parse_args(arguments)
    try:
        breaks = load_breaks()
        for each in breaks:
            each.broken(ROOT)
    except BreakError as error:
        print(f"the list of breaks is not true: {error}", file=sys.stderr)
        return 2
    words = chosen.only
    breaks = tuple(each for each in breaks if not words or any(word in each.name + each.file for word in words))
    if chosen.list:
        print("\n".join(f"{each.name:70} {each.file}" for each in breaks))
        return 0
    for package in PRELOADED:
        importlib.import_module(package)
    with tempfile.TemporaryDirectory(prefix="mutants-") as base:
        return _run(Path(base), breaks, max(chosen.jobs, 1), chosen.trust)


@dataclass
class _Tests:
    """Tests that run in a tree, in a process of their own."""

    tree: Path
    tests: Sequence[str]
    log: Path = field(init=False)
    started: float = field(init=False, default_factory=time.monotonic)

    def __post_init__(self) -> None:
        """Start the process."""
        self.log = self.tree.with_suffix(".log")
        self.process = multiprocessing.get_context("fork").Process(target=_pytest, args=(self,))
        self.process.start()

    @property
    def seconds(self) -> float:
        """For how long they have run."""
        return time.monotonic() - self.started


def _pytest(run: _Tests) -> None:
    """In the child: pytest on the tree, whose modules are found before any others."""
    os.environ |= {"PYTHONPATH": str(run.tree), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    os.chdir(run.tree)
    sys.path[:] = [str(run.tree), *(entry for entry in sys.path if Path(entry or ".").resolve() != ROOT)]
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]
    with run.log.open("wb") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    import pytest

    # What is imported already has no asserts to be rewritten.
    options = ["-q", "-x", "-p", "no:cacheprovider", "--hypothesis-profile=ci", "-W"]
    sys.exit(SHIFT + int(pytest.main([*options, "ignore::pytest.PytestAssertRewriteWarning", *run.tests])))


def _run(base: Path, breaks: Sequence[Break], jobs: int, trust: bool) -> int:
    trees = [Path(shutil.copytree(ROOT, base / f"tree-{number}", ignore=LEFT_OUT)) for number in range(jobs)]
    # First the tests of every break on the whole tree: a break is judged by tests that pass without it.
    queue: list[Break | None] = list(breaks) if trust else [None, *breaks]
    tests = sorted({test for each in breaks for test in each.tests})
    first = "" if trust else f", and first their tests on the whole tree ({len(tests)} files or ids)"
    print(f"{len(breaks)} breaks{first}", flush=True)
    running: dict[Path, tuple[Break | None, _Tests]] = {}
    missed: list[str] = []
    while queue or running:
        for tree in [tree for tree in trees if tree not in running][: len(queue)]:
            each = queue.pop(0)
            if each is not None:
                each.apply(tree)
            running[tree] = (each, _Tests(tree, tests if each is None else each.tests))
        wait([run.process.sentinel for _, run in running.values()], timeout=10)
        for tree, (each, run) in list(running.items()):
            if run.process.is_alive() and run.seconds < TIMEOUT_SECONDS * (1 if each else 4):
                continue
            run.process.kill()
            run.process.join()
            del running[tree]
            code = run.process.exitcode
            if each is None:
                if code != SHIFT:
                    print(run.log.read_text(), "the tests fail on the tree as it is", sep="\n", file=sys.stderr)
                    return _stopped(running)
                print(f"{'sound':9}{run.seconds:7.1f} s  the whole tree", flush=True)
                continue
            each.take_back(tree, ROOT)
            outcome = OUTCOMES.get(code if code is not None else -1, "ERROR")
            print(f"{outcome:9}{run.seconds:7.1f} s  {each.name}  ({each.file})", flush=True)
            if outcome != "caught":
                missed.append(f"{each.name}\n{run.log.read_text()[-2000:] if outcome == 'ERROR' else ''}".strip())
    print(f"{len(breaks) - len(missed)} of {len(breaks)} breaks caught")
    if missed:
        print("not caught:\n  " + "\n  ".join(missed))
    return 1 if missed else 0


def _stopped(running: dict[Path, tuple[Break | None, _Tests]]) -> int:
    for _, run in running.values():
        run.process.kill()
        run.process.join()
    return 2


if __name__ == "__main__":
    raise SystemExit(main())
