"""A plant without SciPy and CVXPY gives the answers of one with them, for every method, loss, norm and support.

The server halves run here, with SciPy; a process that has none answers the same frames at a door over the same rows.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.methods.catalogue import METHODS
from services.contracts.machines.asset_type import AssetType
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.wire.codec import decode, encode
from services.contracts.wire.messages import SiteUpdate
from tests.services.site_agent.answers.test_training import ALL, server_of
from tests.services.site_agent.conftest import THIRD_CLASS, TWO_CLASSES

ROOT = Path(__file__).parents[3]
ROUNDS = 4
NORMS = ("l1", "l2", "linf")
CLASSES = ("healthy", "leak", "worn")
POLYTOPE = {
    "matrix": [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]],
    "limits": [400.0, 400.0, 60.0, 60.0, 30.0, 30.0],
}
"""Far enough from the rows that no wall is met: what meets one needs the extra 'reference'."""
ESTIMATED = {"rule": "confidence", "confidence": 0.9, "tail": None}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    **{method: (method, {"transport_norm": NORMS[place % 3]}) for place, method in enumerate(METHODS)},
    **{f"hinge-{norm}": ("fdr-admm", {"transport_norm": norm}) for norm in NORMS},
    **{f"estimated-{norm}": ("fdr-admm", {"transport_norm": norm, "radius": ESTIMATED}) for norm in NORMS},
    **{f"box-{norm}": ("level-bundle", {"transport_norm": norm, "support": "sensor_ranges"}) for norm in NORMS},
    **{
        f"{loss}-{norm}": ("level-bundle", {"transport_norm": norm, "loss": loss})
        for loss in ("smooth_hinge", "logistic") for norm in NORMS
    },
    **{
        f"polytope-{method}": (method, {"support": POLYTOPE, "radius": {"rule": "fixed", "value": 1e-4}})
        for method in ("level-bundle", "drfl-admm")
    },
}


@pytest.fixture(scope="module")
def without() -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tests.services.site_agent.hidden_packages", *map(str, arguments)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    return run


def record(site: Any, method: str, spec: TrainingSpec) -> list[tuple[bytes, bytes]]:
    """Frames of a join, of some rounds and of an evaluation, each with its answer."""
    found: list[tuple[bytes, bytes]] = []

    def ask(kind: str, **task: Any) -> SiteUpdate:
        frame = encode(site.task(kind, method=method, spec=spec, **task))
        found.append((frame, site.door.answer(frame)))
        update = decode(found[-1][1], 1 << 20)
        assert isinstance(update, SiteUpdate), update
        return update

    ask("join")
    if spec.radius.rule == "confidence":  # so large with so few rows that all weights are 0
        return found
    server, problem = server_of(method, [site], spec)
    state = server.init(problem)
    for number in range(1, ROUNDS + 1):
        message = server.messages(state, problem)[site.folder.name]
        answer = ask("round", round=number, arrays=message, parameters=problem.parameters)
        state = server.step(state, problem, {site.folder.name: answer.arrays})
    ask("evaluate", arrays={"weights": server.weights(state)})
    return found


def test_every_answer_is_the_same(
    make_site: Any, make_table: Any, tmp_path: Path, without: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    asset_type_file = tmp_path / "three.toml"
    asset_type_file.write_text(TWO_CLASSES + THIRD_CLASS)
    asset_type = AssetType.from_toml(asset_type_file)
    recorded, folders = {}, []
    for name, (method, terms) in CASES.items():
        site = make_site(make_table(90, CLASSES), folder=name, asset_type=asset_type, policy=ALL)
        copy = tmp_path / "copies" / name
        for part in ("tasks", "answers"):
            (copy / part).mkdir(parents=True)
        for file in (site.folder / "data.csv", site.folder / "site.nk"):
            shutil.copy(file, copy)
        shutil.copy(asset_type_file, copy / "asset_type.toml")
        (copy / "policy.json").write_text(ALL.model_dump_json())
        # The same record: what stands in for a cut that would isolate a row is drawn by a secret in it.
        with (
            closing(sqlite3.connect(site.folder / "exposure.sqlite")) as made,
            closing(sqlite3.connect(copy / "exposure.sqlite")) as copied,
        ):
            made.backup(copied)
        recorded[name] = record(site, method, TrainingSpec.model_validate(terms))
        for number, (frame, _) in enumerate(recorded[name]):
            (copy / "tasks" / f"{number:02}").write_bytes(frame)
        folders.append(copy)
    done = without("answer", *folders)
    assert done.returncode == 0, done.stderr
    for copy, (name, exchanges) in zip(folders, recorded.items(), strict=True):
        for number, (_, here) in enumerate(exchanges):
            ours, theirs = (decode(each, 1 << 20) for each in (here, (copy / "answers" / f"{number:02}").read_bytes()))
            assert isinstance(theirs, SiteUpdate), f"{name} {number}: {theirs}"
            assert ours.arrays.keys() == theirs.arrays.keys()
            for what, array in ours.arrays.items():
                size = float(np.abs(array).max(initial=1e-3))
                np.testing.assert_allclose(
                    theirs.arrays[what], array, rtol=1e-6, atol=1e-7 * size, err_msg=f"{name} {number} {what}"
                )


DOORS = (
    "door/test_tuning_at_the_door.py", "door/test_calibration_at_the_door.py", "door/test_networks_at_the_door.py",
    "door/test_noise_at_the_door.py", "door/test_sums_at_the_door.py", "door/test_exposure_at_the_door.py",
    "door/test_targets.py", "door/test_local_round.py", "own_use/test_local_predictor.py",
    "own_use/test_local_coverage.py", "own_use/test_sample_stream.py", "own_use/test_signed_models.py", "test_cli.py",
    "test_init.py", "console/test_figures.py",
)


def test_the_doors_own_tests_pass(without: Any) -> None:
    paths = [Path("tests/services/site_agent") / file for file in DOORS]
    done = without("pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *paths)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
