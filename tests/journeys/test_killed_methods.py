"""A flow killed in the middle of a run comes to the model it would have come to, whatever its method remembers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.contracts.history.run import Run
from tests.journeys.works import ProcessWorks, open_process_works

BEFORE_THE_KILL = 5
BALL = {"norm": "l2", "radius": 0.3}
CASES: dict[str, dict[str, Any]] = {
    # the evidence alone
    "fdr-sm": {},
    # splitting steps, duals and step sizes that grow
    "drfl-admm": {"max_rounds": 20, "mixture": BALL, "parameters": {"probe": 0.0}},
    # control variates, duals of two sets
    "scaff-pd-ia": {"spec": {"loss": "logistic"}},
    # sampled sites, drawn snapshots, rows mixed in the vault
    "drflm": {},
    # a network of two layers, dropout drawn in the vaults: a best point instead of evidence
    "fedavg": {"spec": {"loss": "cross_entropy", "network": {"hidden": 8, "dropout": 0.2}}},
}


SETTINGS = {method: {"method": method, "max_rounds": 30, "min_sites": 4} | changes for method, changes in CASES.items()}


@pytest.fixture(scope="module")
def settings(request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """Of the methods of which there is a test in this session."""
    names = [item.name for item in request.session.items if item.path == request.path]
    return {method: each for method, each in SETTINGS.items() if any(f"[{method}]" in name for name in names)}


@pytest.fixture(scope="module")
def twins(
    tmp_path_factory: pytest.TempPathFactory, prefect_url: str, new_mlflow: Callable[[Path], str],
    settings: dict[str, dict[str, Any]],
) -> Iterator[tuple[ProcessWorks, ProcessWorks]]:
    """Two works whose plants have the same rows and draw by the same secret, and were never asked anything.

    A plant's guard decides by all that has left: at one plant the second of two runs may be told a looser cut.
    """
    with ExitStack() as stack:
        homes = [tmp_path_factory.mktemp(name) for name in ("killed", "whole")]
        first, second = (
            stack.enter_context(open_process_works(home, prefect_url, rows=60, secret=b"of both works".ljust(32)))
            for home in homes
        )
        for works in (first, second):
            assert new_mlflow(works.home) == works.settings.tracking_uri
            for method, changes in settings.items():
                works.plan(method, **changes)
        yield first, second


@pytest.fixture(scope="module")
def ends(
    twins: tuple[ProcessWorks, ProcessWorks], settings: dict[str, dict[str, Any]]
) -> list[dict[str, Run]]:
    """The end of every run by its method: in the first works killed in the middle once, in the second not.

    A process goes on with the run whose process was killed, then begins the next method's; the last does the rest.
    """
    works, undisturbed = twins
    interrupted: list[Run] = []
    for method in settings:
        undisturbed.train(method)
    for method, changes in settings.items():
        rounds = changes["max_rounds"]
        works.train(method)
        works.wait_for_round(method, BEFORE_THE_KILL)
        works.kill_training()
        interrupted.append(works.newest_run(method))
        assert interrupted[-1].status == "running" and BEFORE_THE_KILL <= interrupted[-1].rounds < rounds
        works.train(method)
    found = [{method: each.wait_for_run(method) for method in settings} for each in twins]
    assert [found[0][run.plan.name].run_id for run in interrupted] == [run.run_id for run in interrupted]
    return found


@pytest.mark.parametrize("method", CASES)
def test_a_killed_flow_resumes_to_the_same_model(
    twins: tuple[ProcessWorks, ProcessWorks], ends: list[dict[str, Run]], method: str
) -> None:
    rounds = SETTINGS[method]["max_rounds"]
    for found in ends:
        assert found[method].status == "completed" and found[method].rounds == rounds, found[method].reason
    works, undisturbed = twins
    records = works.store.runs.get_rounds(ends[0][method].run_id)
    assert [record.round for record in records] == list(range(1, rounds + 1))
    assert np.abs(works.weights(method) - undisturbed.weights(method)).max() <= 1e-9
