"""A fifth plant lies, in one way after another: the honest four end with a champion, and the record names the liar."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.registry.mlflow_registry import ModelRegistry
from tests.journeys.liar import FIRST_LIE, LIES
from tests.journeys.works import BIN, rows_of

LIAR, HONEST = "plant-6", ["plant-1", "plant-2", "plant-3", "plant-4"]
CODES = {
    "negative risk": "implausible", "slope flipped": "contradiction", "risk too low": "contradiction",
    "broken numbers": "not_finite", "risk too low at the end": "contradiction",
}


@pytest.fixture
def liar(works: Any) -> Iterator[Any]:
    """The works with the liar among its plants; for this test alone."""
    works.create_site(LIAR, rows_of(4, 120, seed=7), ["flow", "pressure", "speed", "label"])
    works.start_agent(LIAR, program=str(Path(__file__).with_name("liar.py")))
    works.wait_for_agents()
    yield works
    works.kill_agent(LIAR)
    del works.agents[LIAR]
    works.store.sites.suspend(LIAR)


def test_the_honest_four_make_the_champion_and_the_record_names_the_liar(liar: Any) -> None:
    works, plans = liar, {name: f"liar-{number}" for number, name in enumerate(LIES)}
    gates = {"max_gap": 1e-2, "min_f1": 0.5, "min_site_f1": 0.4}
    for plan in plans.values():
        works.plan(
            plan, method="level-bundle", gap=1e-2, max_rounds=60, min_sites=4, sites=(*HONEST, LIAR), gates=gates
        )
    for plan in plans.values():
        works.train(plan)
    runs = [works.wait_for_run(plan) for plan in plans.values()]

    lies = dict(map(json.loads, (works.plants / LIAR / "lies.jsonl").read_text().splitlines()))
    assert sorted(lies[run.run_id] for run in runs) == sorted(LIES)
    registry = ModelRegistry(works.settings.tracking_uri, works.settings.artifact_root)
    for run in runs:
        assert run.status == "completed" and "is champion" in run.reason, run.reason
        (excluded,) = run.excluded
        assert (excluded.site_id, excluded.code) == (LIAR, CODES[lies[run.run_id]]), lies[run.run_id]
        assert excluded.round >= FIRST_LIE
        assert f"{LIAR} left out in round {excluded.round}: {excluded.reason}" in run.reason
        champion = registry.get(run.plan.name, "champion")
        assert champion.run_id == run.run_id and champion.excluded == run.excluded
        assert [site.site_id for site in champion.sites] == HONEST
        assert champion.fresh_weight == pytest.approx(1.0) and champion.certified_gap <= 1e-2
        records = works.store.runs.get_rounds(run.run_id)
        told = {record.round for record in records for each in record.answers if each.status == "excluded"}
        assert told == {excluded.round}
        assert all(LIAR not in [each.site_id for each in record.answers] for record in records[excluded.round :])

    shown = subprocess.run(
        [str(BIN / "ballast"), "run", "show", runs[0].run_id], env=works.environment, capture_output=True, text=True,
        check=True,
    )
    assert LIAR in next(line for line in shown.stdout.splitlines() if line.startswith("excluded"))
