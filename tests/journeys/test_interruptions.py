"""What is killed comes back, and the model is the one it would have been."""

from __future__ import annotations

import time
from typing import Any


def accepted(works: Any, run_id: str) -> list[set[str]]:
    rounds = works.store.runs.get_rounds(run_id, limit=10_000)
    return [{answer.site_id for answer in record.answers if answer.status == "accepted"} for record in rounds]


def test_a_killed_site_is_done_without_and_joins_again(works: Any) -> None:
    works.plan("site-killed", max_rounds=150, round_deadline_seconds=8)
    works.train("site-killed")
    works.wait_for_round("site-killed", 10)
    works.kill_agent("plant-4")
    killed_in = works.newest_run("site-killed").rounds
    works.wait_for_round("site-killed", killed_in + 2)
    works.start_agent("plant-4")
    run = works.wait_for_run("site-killed")
    assert run.status == "completed", run.reason
    there = accepted(works, run.run_id)
    everybody = {f"plant-{k}" for k in range(1, 5)}
    absent = [number for number, sites in enumerate(there, 1) if sites == everybody - {"plant-4"}]
    assert absent, "the killed site was never missed"
    assert there[0] == everybody
    assert there[-1] == everybody, "the site that came back did not join again"
    codes = {
        answer.code for record in works.store.runs.get_rounds(run.run_id) for answer in record.answers
        if answer.site_id == "plant-4" and answer.status != "accepted"
    }
    assert codes <= {"absent", "late"}


def test_on_sums_an_agent_and_the_flow_may_be_killed(works: Any) -> None:
    works.plan("sums-killed", method="cohort-bundle", parameters={"questions": 2}, reveal="sums", max_rounds=40)
    works.train("sums-killed")
    works.wait_for_round("sums-killed", 8)
    works.kill_agent("plant-2")
    works.start_agent("plant-2")
    works.wait_for_round("sums-killed", works.newest_run("sums-killed").rounds + 8)
    works.kill_training()
    works.train("sums-killed")
    run = works.wait_for_run("sums-killed")
    assert run.status == "completed", run.reason
    assert run.excluded == () and run.fresh_weight == 1.0 and run.gap is not None and run.gap < 1e-2
    rounds = works.store.runs.get_rounds(run.run_id, limit=100)
    assert [record.round for record in rounds] == list(range(1, len(rounds) + 1))
    assert all(record.upper >= run.lower for record in rounds)


def test_the_plant_link_may_die_and_come_back(works: Any) -> None:
    works.plan("link-killed", max_rounds=40)
    works.train("link-killed")
    works.wait_for_round("link-killed", 10)
    works.kill_server()
    time.sleep(2.0)
    works.start_server()
    run = works.wait_for_run("link-killed")
    assert run.status == "completed", run.reason
    assert run.rounds == 40
    assert all(len(sites) == 4 for sites in accepted(works, run.run_id))


def test_too_few_sites_end_the_run_with_the_reason(works: Any) -> None:
    works.plan("too-few", min_sites=4, max_rounds=2000, round_deadline_seconds=8, absence_patience_seconds=2)
    flow = works.start_flow("too-few")
    works.wait_for_round("too-few", 5)
    works.kill_agent("plant-3")
    run = works.wait_for_end("too-few", flow)
    works.start_agent("plant-3")
    works.wait_for_agents()
    assert run.status == "failed"
    assert "3 of the 4 sites that the plan needs answered" in run.reason
    assert "plant-3" in run.reason
    assert flow.returncode != 0
    assert run.model_version is None


def test_a_cancelled_run_ends_at_once(works: Any) -> None:
    works.plan("cancelled", max_rounds=5000)
    works.train("cancelled")
    works.wait_for_round("cancelled", 5)
    works.store.runs.request_cancel(works.newest_run("cancelled").run_id)
    run = works.wait_for_run("cancelled")
    assert run.status == "cancelled"
    assert run.rounds < 5000
