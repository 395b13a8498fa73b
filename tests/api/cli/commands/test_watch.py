"""``ballast run watch``: a line a round while it goes on, and an exit code that says how it ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from api.cli.commands import run as commands
from services.contracts.history.run import SiteTermsRecord
from services.contracts.plans.plan import Plan
from services.plant_simulator.assets import builtin_asset_type
from tests.versions import a_round, an_answer


@pytest.mark.parametrize(("status", "code", "every", "waited"), [
    ("completed", 0, "0.25", 0.25), ("failed", 1, "0.001", 0.05), ("cancelled", 1, "7", 7.0),
])
def test_a_run_is_followed_until_its_end(
    shell: Any, behind: Any, status: str, code: int, every: str, waited: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = behind.store
    store.asset_types.add(builtin_asset_type("triplex-pump"))
    run = store.runs.create_run(store.plans.create(Plan(name="nightly", asset_type="triplex-pump")).plan)
    terms = SiteTermsRecord(site_id="plant-1", weight=1.0, radius=0.1, n_samples=10)

    def commit(*numbers: int) -> None:
        for number in numbers:
            record = a_round(run.run_id, number, an_answer("plant-1"), upper=0.5, lower=0.4, gap=0.2)
            store.runs.commit_round(record, {"weights": np.zeros(3)})

    def trains() -> None:
        store.runs.set_doing(run.run_id, "training")
        commit(1)

    # What the run does between two looks.
    steps: list[Callable[[], object]] = [
        lambda: store.runs.begin_run(run.run_id, (terms,)),
        trains,
        lambda: None,
        lambda: commit(2, 3),
        lambda: store.runs.finish_run(run.run_id, status, "as the test says"),
    ]
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        steps.pop(0)()

    monkeypatch.setattr(commands, "time", SimpleNamespace(sleep=sleep))
    for never in ("0", "nan", "inf"):
        assert shell.run("run", "watch", run.run_id, "--every", never)[0] == 2
    at_work = iter([False, False, True, False, None])  # at each look before the end
    monkeypatch.setattr(commands, "flows_at_work", lambda settings: next(at_work))
    ended, out, told = shell.run("run", "watch", run.run_id, "--every", every)
    assert ended == code
    waiting = f"ballast: run {run.run_id} waits: no flows process runs on {behind.settings.home}; "
    assert [line.startswith(waiting) for line in told.splitlines()] == [True, True], "each time that it is gone"
    assert (steps, waits) == ([], [waited] * 5), "the database is left alone meanwhile"
    sites = "at most 0.5, 1 sites"
    assert out.splitlines() == [
        "pending", "running", "running: training", f"round 1: gap 2.00e-01, {sites}", f"round 2: gap 2.00e-01, {sites}",
        f"round 3: gap 2.00e-01, {sites}",
        f"{status}: as the test says",
    ]
    ended, out, told = shell.run("run", "watch", run.run_id, "--json")
    assert [json.loads(line)["round"] for line in out.splitlines()] == [1, 2, 3]
    why = "" if status == "completed" else f"ballast: run {run.run_id} {status}: as the test says\n"
    assert (ended, told) == (code, why), "a run may fail before its first round"
