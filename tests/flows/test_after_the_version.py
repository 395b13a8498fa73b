"""A run whose process died after its version was recorded: it ends without the plants, as it would have ended."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from flows import retrain
from flows.publish import closing_note, promote_if_gates_hold, register
from flows.wiring import FlowContext
from services.contracts.errors import UnavailableError
from services.contracts.model_version import ModelVersion
from services.contracts.run import Run
from services.coordinator.training_state import TrainedModel
from services.registry.labels import CHAMPION
from services.round_store.runs import RunRepository
from tests.flows import conftest

Killed = Callable[..., tuple[Run, TrainedModel, ModelVersion]]
AWAY = UnavailableError("no NATS server")


@pytest.fixture
def killed(works: Any, monkeypatch: pytest.MonkeyPatch) -> Killed:
    """Trains and registers, and finds the store locked; from then on no plant link opens. No Prefect server."""

    async def linked(*_: object) -> None: ...

    monkeypatch.setattr(retrain, "get_run_logger", lambda: logging.getLogger("ballast.flows"))
    monkeypatch.setattr(retrain, "step", lambda name, work, waits=(): work())
    monkeypatch.setattr(retrain, "link_to_version", linked)

    def away(_: FlowContext) -> None:
        raise AWAY

    def train(name: str, **changes: Any) -> tuple[Run, TrainedModel, ModelVersion]:
        left: list[Any] = []

        def seen(context: FlowContext, run: Run, trained: TrainedModel, *more: Any) -> ModelVersion:
            version = register(context, run, trained, *more)
            left.extend((run.run_id, trained, version))
            return version

        def locked(*_: object) -> None:
            raise UnavailableError("the database was locked", code="database_busy")

        with monkeypatch.context() as patch:
            patch.setattr(conftest, "register", seen)
            patch.setattr(RunRepository, "finish_run", locked)
            with pytest.raises(UnavailableError, match="locked"):
                works.train(works.plan(name, **changes))
        monkeypatch.setattr(FlowContext, "plant_link", away)
        run_id, trained, version = left
        return works.context.store.runs.get_run(run_id), trained, version

    return train


def count(works: Any, name: str) -> tuple[int, int]:
    """Promotions of a model in the audit trail, and refusals by its gates among the events."""
    trail = works.context.store.audit.list_events(limit=100)
    with works.context.store.engine.connect() as connection:
        documents = connection.exec_driver_sql("SELECT document FROM events WHERE kind = 'gate.refused'").scalars()
        refused = sum(json.loads(each)["plan"] == name for each in documents)
    return sum(each.action == "model.promote" and each.target == name for each in trail), refused


@pytest.mark.parametrize(("reveal", "judged", "gap"), [
    ("each site", False, None), ("each site", True, None), ("sums", True, None), ("each site", True, 1e-12),
])
def test_it_ends_as_it_would_have_ended_and_does_nothing_twice(
    works: Any, killed: Killed, reveal: str, judged: bool, gap: float | None
) -> None:
    name, method = f"dies-{reveal[0]}-{judged}-{gap is None}".lower(), {"sums": "cohort-bundle"}.get(reveal)
    changes = {"method": method} if method else {}
    run, trained, version = killed(name, reveal=reveal, gates={"max_gap": gap}, **changes)
    context, number = works.context, version.version
    before = promote_if_gates_hold(context, run, version) if judged else f"version {number} is champion"
    context.store.runs.request_cancel(run.run_id)
    answer = asyncio.run(retrain.drive(context, context.store.runs.get_run(run.run_id)))
    ended = context.store.runs.get_run(run.run_id)
    assert (ended.status, ended.reason) == ("completed", closing_note(run, trained, before))
    assert (answer["version"], answer["outcome"]) == (number, before)
    assert context.registry.aliases(name).get(CHAMPION) == (number if gap is None else None)
    assert [each.run_id for each in context.store.model_versions.list_versions(name, limit=9)] == [run.run_id]
    assert count(works, name) == ((1, 0) if gap is None else (0, 1))


def test_a_version_that_an_operator_took_back_is_not_promoted_again(works: Any, killed: Killed) -> None:
    run, _, version = killed("taken-back")
    promote_if_gates_hold(works.context, run, version)
    with works.context.store.atomic() as unit:
        unit.model_versions.record_alias("taken-back", CHAMPION, None, "user:ada", "it misses leaks")
        works.context.registry.point("taken-back", CHAMPION, None)
    said = asyncio.run(retrain.drive(works.context, run))["outcome"]
    assert said == f"version {version.version} was champion, and is no more"
    assert CHAMPION not in works.context.registry.aliases("taken-back") and count(works, "taken-back") == (1, 0)


def test_without_the_rounds_state_the_note_says_what_is_known(works: Any, killed: Killed) -> None:
    run, _, _ = killed("state-lost")
    with works.context.store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE run_states SET frame = x'00' WHERE run_id = ?", (run.run_id,))
    asyncio.run(retrain.drive(works.context, run))
    ended = works.context.store.runs.get_run(run.run_id)
    assert ended.status == "completed" and ended.reason.startswith("its version was registered before its process")


def test_a_version_that_the_registry_lost_is_made_anew_with_the_plants(works: Any, killed: Killed) -> None:
    run, _, version = killed("lost")
    assert works.context.registry.forget("lost", [version.version]) == ()
    with pytest.raises(UnavailableError) as raised:
        asyncio.run(retrain.drive(works.context, run))
    assert raised.value is AWAY
