"""A flow killed in the middle of a run comes to the model it would have come to, whatever its method remembers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

BALL = {"norm": "l2", "radius": 0.3}
CASES: dict[str, dict[str, Any]] = {
    # the evidence alone
    "fdr-sm": {"max_rounds": 150},
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
def undisturbed(works: Any) -> Any:
    """The process that trains with each method without being killed."""
    for method, settings in SETTINGS.items():
        works.plan(f"whole-{method}", **settings)
    return works.start_flow(*(f"whole-{method}" for method in SETTINGS))


@pytest.mark.parametrize("method", CASES)
def test_a_killed_flow_resumes_to_the_same_model(works: Any, undisturbed: Any, method: str) -> None:
    rounds = SETTINGS[method]["max_rounds"]
    whole, killed = f"whole-{method}", f"killed-{method}"
    works.plan(killed, **SETTINGS[method])
    first = works.start_flow(killed)
    works.wait_for_round(killed, rounds // 5)
    first.kill()
    first.wait()
    left = works.newest_run(killed)
    assert left.status == "running" and rounds // 5 <= left.rounds < rounds
    run = works.wait_for_end(killed, works.start_flow(killed))

    assert run.run_id == left.run_id and run.status == "completed", run.reason
    assert [record.round for record in works.store.runs.get_rounds(run.run_id)] == list(range(1, rounds + 1))
    expected = works.wait_for_end(whole, undisturbed)
    assert expected.status == "completed" and expected.rounds == rounds, expected.reason
    assert np.abs(works.weights(killed) - works.weights(whole)).max() <= 1e-9
