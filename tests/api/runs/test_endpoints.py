from __future__ import annotations

import json
import re
from typing import Any

from services.contracts.access.identity import Role
from services.contracts.history.run import RoundRecord, Run


def get(world: Any, path: str) -> Any:
    answer = world.call(Role.ADMINISTRATOR, "GET", path)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_runs_and_rounds_are_the_contracts_also_without_bounds(shared_world: Any) -> None:
    runs = [Run.model_validate(run) for run in get(shared_world, "/v1/runs?plan=pumps&status=completed")["runs"]]
    assert [run.status for run in runs] == ["completed"]
    one = Run.model_validate(get(shared_world, f"/v1/runs/{runs[0].run_id}"))
    assert one == runs[0]
    path = f"/v1/runs/{one.run_id}/rounds"
    rounds = [RoundRecord.model_validate(record) for record in get(shared_world, path)["rounds"]]
    assert rounds == shared_world.backend.store.runs.get_rounds(one.run_id)
    assert rounds[0].lower == float("-inf")
    later = get(shared_world, f"{path}?after=1&limit=1")["rounds"]
    assert [record["round"] for record in later] == [2]
    assert get(shared_world, "/v1/runs?plan=nobody") == {"runs": []}
    assert get(shared_world, "/v1/runs?offset=1000") == {"runs": []}


def test_plants_bear_pseudonyms_for_who_may_not_know_them(shared_world: Any) -> None:
    run_id = get(shared_world, "/v1/runs?plan=pumps&status=completed")["runs"][0]["run_id"]
    for path in ("/v1/runs", f"/v1/runs/{run_id}", f"/v1/runs/{run_id}/rounds"):
        viewers, engineers = (shared_world.call(role, "GET", path).text for role in (Role.VIEWER, Role.ENGINEER))
        assert "plant-" not in viewers and re.search(r"site-[0-9a-f]{8}", viewers), path
        assert {*re.findall(r"plant-[a-z]+", engineers)} >= {"plant-east", "plant-west"}, path


def test_every_number_is_one_that_json_has_or_a_word(shared_world: Any) -> None:
    """Readers in other languages take no bare Infinity."""
    def refuse(word: str) -> None:
        raise AssertionError(word)

    run_id = get(shared_world, "/v1/runs?plan=pumps&status=completed")["runs"][0]["run_id"]
    text = shared_world.call(Role.VIEWER, "GET", f"/v1/runs/{run_id}/rounds").text
    assert json.loads(text, parse_constant=refuse)["rounds"][0]["lower"] == "-Infinity"


def test_runs_of_one_status_and_why_one_was_cancelled(world: Any) -> None:
    store = world.backend.store
    (waits,) = (store.runs.create_run(store.plans.get("pumps").plan).run_id,)
    listed = {
        status: [run["run_id"] for run in get(world, f"/v1/runs?status={status}")["runs"]]
        for status in ("pending", "completed", "failed")
    }
    assert listed["pending"] == [waits] and len(listed["completed"]) == 1 and listed["failed"] == []
    for reason in ("the wrong pumps", "once more"):
        answer = world.call(Role.OPERATOR, "POST", f"/v1/admin/runs/{waits}/cancel", {"reason": reason})
        assert answer.status_code == 202 and answer.json()["cancel_requested"]
    (entry,) = store.audit.list_events(action="run.cancel")
    assert (entry.reason, entry.target) == ("the wrong pumps", f"run:{waits}"), "asked twice, it is noted once"
