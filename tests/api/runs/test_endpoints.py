from __future__ import annotations

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
