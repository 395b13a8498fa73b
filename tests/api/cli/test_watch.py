"""``ballast run watch``: a line a round while it goes on, and an exit code that says how it ended."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import numpy as np
import pytest

from services.contracts.history.run import SiteTermsRecord
from services.contracts.plans.plan import Plan
from services.plant_simulator.assets import builtin_asset_type
from tests.versions import a_round, an_answer


@pytest.mark.parametrize(("status", "code"), [("completed", 0), ("failed", 1)])
def test_a_run_is_followed_until_its_end(shell: Any, behind: Any, status: str, code: int) -> None:
    store = behind.store
    store.asset_types.add(builtin_asset_type("triplex-pump"))
    run = store.runs.create_run(store.plans.create(Plan(name="nightly", asset_type="triplex-pump")).plan)
    terms = SiteTermsRecord(site_id="plant-1", weight=1.0, radius=0.1, n_samples=10)

    def drive() -> None:
        time.sleep(0.3)
        store.runs.begin_run(run.run_id, (terms,))
        for number in (1, 2):
            record = a_round(run.run_id, number, an_answer("plant-1"), upper=0.5, lower=0.4, gap=0.2)
            store.runs.commit_round(record, {"weights": np.zeros(3)})
            time.sleep(0.2)
        store.runs.finish_run(run.run_id, status, "as the test says")

    driver = threading.Thread(target=drive)
    driver.start()
    ended, out, _ = shell.run("run", "watch", run.run_id, "--every", "0.05")
    driver.join()
    assert ended == code
    lines = out.splitlines()
    assert lines[0] == "pending" and lines[-1] == f"{status}: as the test says"
    assert [line.split(",")[0] for line in lines if line.startswith("round")] == [
        "round 1: gap 2.00e-01", "round 2: gap 2.00e-01",
    ]
    _, out, _ = shell.run("run", "watch", run.run_id, "--json")
    assert [json.loads(line)["round"] for line in out.splitlines()] == [1, 2]
