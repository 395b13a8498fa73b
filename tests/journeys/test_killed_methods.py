"""A flow killed in the middle of a run comes to the model it would have come to, whatever its method remembers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from services.contracts.history.run import Run

BALL = {"norm": "l2", "radius": 0.3}
CASES: dict[str, dict[str, Any]] = {
    # the evidence alone
    "fdr-sm": {"max_rounds": 80},
    # splitting steps, duals and step sizes that grow
    "drfl-admm": {"mixture": BALL, "parameters": {"probe": 0.0}},
    # control variates, duals of two sets
    "scaff-pd-ia": {"spec": {"loss": "logistic"}},
    # sampled sites, drawn snapshots, rows mixed in the vault
    "drflm": {},
    # a network of two layers, dropout drawn in the vaults: a best point instead of evidence
    "fedavg": {"spec": {"loss": "cross_entropy", "network": {"hidden": 8, "dropout": 0.2}}},
}


SETTINGS = {method: {"method": method, "max_rounds": 50, "min_sites": 4} | changes for method, changes in CASES.items()}


@pytest.fixture(scope="module")
def ends(works: Any) -> dict[str, Run]:
    """The end of every run by its plan's name: ``killed-`` in the middle once, and ``whole-``, left in peace.

    A process goes on with the run whose process was killed, then begins the next method's; the last does the rest.
    """
    interrupted: list[Run] = []
    wholes = [f"whole-{method}" for method in SETTINGS]
    for method, settings in SETTINGS.items():
        killed, rounds = f"killed-{method}", settings["max_rounds"]
        works.plan(killed, **settings)
        works.plan(f"whole-{method}", **settings)
        works.train(killed)
        works.wait_for_round(killed, rounds // 5)
        works.kill_training()
        interrupted.append(works.newest_run(killed))
        assert interrupted[-1].status == "running" and rounds // 5 <= interrupted[-1].rounds < rounds
        works.train(killed)
    for plan in wholes:
        works.train(plan)
    found = {plan: works.wait_for_run(plan) for plan in [*(run.plan.name for run in interrupted), *wholes]}
    assert [found[run.plan.name].run_id for run in interrupted] == [run.run_id for run in interrupted]
    return found


@pytest.mark.parametrize("method", CASES)
def test_a_killed_flow_resumes_to_the_same_model(works: Any, ends: dict[str, Run], method: str) -> None:
    rounds = SETTINGS[method]["max_rounds"]
    whole, killed = f"whole-{method}", f"killed-{method}"
    for plan in (whole, killed):
        assert ends[plan].status == "completed" and ends[plan].rounds == rounds, ends[plan].reason
    records = works.store.runs.get_rounds(ends[killed].run_id)
    assert [record.round for record in records] == list(range(1, rounds + 1))
    assert np.abs(works.weights(killed) - works.weights(whole)).max() <= 1e-9
