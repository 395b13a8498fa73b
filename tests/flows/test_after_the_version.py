"""A run whose process died after its evaluation: it ends without the plants, as it would have ended."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Callable
from typing import Any

import pytest

from flows import doing, retrain
from flows.publish import keep_draft, promote_if_gates_hold, register
from flows.wiring import FlowContext
from services.contracts.errors import UnavailableError
from services.contracts.history.run import Run
from services.contracts.versions.draft import VersionDraft
from services.coordinator.run_state.run_errors import RunCancelledError
from services.registry.labels import CHAMPION
from services.registry.mlflow_registry import ModelRegistry
from services.registry.mlflow_store import MlflowStore
from services.round_store.runs.model_versions import ModelVersionRepository
from services.round_store.runs.runs import RunRepository
from tests.flows import conftest
from tests.steps import tried_again

Killed = Callable[..., tuple[Run, VersionDraft]]
HEARD_OF = "when the registry has the version and the store does not"
DIES_AT = {
    "before the registry is asked": (ModelRegistry, "register"),
    "in the middle of the registry": (MlflowStore, "create_version"),
    HEARD_OF: (ModelVersionRepository, "add"),
    "between the version's row and the run's": (RunRepository, "set_result"),
    "before the run's end": (RunRepository, "finish_run"),
}


class DiedError(Exception):
    """The process is gone."""


@pytest.fixture
def killed(works: Any, monkeypatch: pytest.MonkeyPatch) -> Killed:
    """Trains and evaluates, and dies at one of ``DIES_AT``; from then on no plant link opens. No Prefect server."""

    async def linked(*_: object) -> None: ...

    monkeypatch.setattr(retrain, "get_run_logger", lambda: logging.getLogger("ballast.flows"))
    monkeypatch.setattr(doing, "step", lambda name, work, waits=(): work())
    monkeypatch.setattr(retrain, "link_to_version", linked)

    def away(*_: object) -> None:
        raise UnavailableError("no NATS server")

    def train(name: str, dies: str = "before the run's end", **changes: Any) -> tuple[Run, VersionDraft]:
        drafts: list[VersionDraft] = []

        def kept(*given: Any) -> VersionDraft:
            drafts.append(keep_draft(*given))
            return drafts[-1]

        def gone(*_: object) -> None:
            raise DiedError

        with monkeypatch.context() as patch:
            patch.setattr(conftest, "keep_draft", kept)
            patch.setattr(*DIES_AT[dies], gone)
            with pytest.raises(DiedError):
                works.train(works.plan(name, **changes))
        monkeypatch.setattr(FlowContext, "plant_link", away)
        (draft,) = drafts
        return works.context.store.runs.get_run(draft.version.run_id), draft

    return train


def gone_on(works: Any, run: Run) -> dict[str, Any]:
    """What the next process makes of the run."""
    return asyncio.run(retrain.drive(works.context, works.context.store.runs.get_run(run.run_id)))


def count(works: Any, name: str) -> tuple[int, int]:
    """Promotions of a model in the audit trail, and refusals by its gates among the events."""
    trail = works.context.store.audit.list_events(limit=100)
    with works.context.store.engine.connect() as connection:
        documents = connection.exec_driver_sql("SELECT document FROM events WHERE kind = 'gate.refused'").scalars()
        refused = sum(json.loads(each)["plan"] == name for each in documents)
    return sum(each.action == "model.promote" and each.target == f"model:{name}" for each in trail), refused


@pytest.mark.parametrize(("dies", "reveal"), [*((each, "each site") for each in DIES_AT), (HEARD_OF, "sums")])
def test_wherever_it_died_the_version_is_the_one_that_was_made(
    works: Any, killed: Killed, dies: str, reveal: str
) -> None:
    name = f"{reveal[0]}-{list(DIES_AT).index(dies)}"
    context = works.context
    changes = {"method": "cohort-bundle"} if reveal == "sums" else {}
    run, draft = killed(name, dies, reveal=reveal, **changes)
    assert run.model_version == ("1" if dies == "before the run's end" else None)
    context.store.runs.request_cancel(run.run_id)  # too late
    answer = gone_on(works, run)
    ended, (version,) = context.store.runs.get_run(run.run_id), context.registry.versions(name)
    assert (ended.status, ended.model_version, answer["version"]) == ("completed", "1", version.version)
    assert ended.reason == f"{draft.stopped}; version 1 is champion" and draft.stopped
    found = context.registry.get(name, "1")
    assert found.to_document() == draft.version.to_document() | {"version": "1"} and found.signature
    assert context.registry.certificate(found) == draft.certificate and draft.certificate
    assert context.registry.aliases(name)[CHAMPION] == "1"
    assert [each.run_id for each in context.store.model_versions.list_versions(name, limit=9)] == [run.run_id]
    assert count(works, name) == (1, 0) and context.store.runs.get_draft(run.run_id) is None


@pytest.mark.parametrize(("judged", "gap"), [(True, None), (True, 1e-12), (False, 1e-12)])
def test_gates_are_judged_and_a_version_is_promoted_once(
    works: Any, killed: Killed, judged: bool, gap: float | None
) -> None:
    name = f"once-{judged}-{gap is None}".lower()
    run, draft = killed(name, gates={"max_gap": gap})
    version = register(works.context, run, draft)
    if judged:
        promote_if_gates_hold(works.context, run, version)
    said = gone_on(works, run)["outcome"]
    assert said.startswith("version 1 is champion" if gap is None else "version 1 stays challenger: max_gap")
    assert works.context.registry.aliases(name).get(CHAMPION) == ("1" if gap is None else None)
    assert count(works, name) == ((1, 0) if gap is None else (0, 1))


def test_a_version_that_an_operator_took_back_is_not_promoted_again(works: Any, killed: Killed) -> None:
    run, draft = killed("taken-back")
    promote_if_gates_hold(works.context, run, register(works.context, run, draft))
    with works.context.store.atomic() as unit:
        unit.model_versions.record_alias("taken-back", CHAMPION, None, "user:ada", "it misses leaks")
        works.context.registry.point("taken-back", CHAMPION, None)
    assert gone_on(works, run)["outcome"] == "version 1 was champion, and is no more"
    assert CHAMPION not in works.context.registry.aliases("taken-back") and count(works, "taken-back") == (1, 0)


def test_neither_the_rounds_state_nor_the_registry_s_version_is_needed(works: Any, killed: Killed) -> None:
    run, draft = killed("state-lost")
    with works.context.store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE run_states SET frame = x'00' WHERE run_id = ?", (run.run_id,))
    assert works.context.registry.forget("state-lost", ["1"]) == ()
    gone_on(works, run)
    ended = works.context.store.runs.get_run(run.run_id)
    assert ended.status == "completed" and ended.reason.startswith(draft.stopped)
    assert works.context.registry.get("state-lost", CHAMPION).signature == draft.version.signature


def test_before_its_draft_is_committed_the_plants_are_asked(works: Any, killed: Killed) -> None:
    run, _ = killed("too-early")
    with works.context.store.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM run_drafts WHERE run_id = ?", (run.run_id,))
    with pytest.raises(UnavailableError, match="no NATS server"):
        gone_on(works, run)


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Steps are tried again as Prefect tries them, without the waiting: what was waited."""
    waited: list[float] = []

    async def noted(seconds: float) -> None:
        waited.append(seconds)

    async def stepped(name: str, work: Any, waits: tuple[float, ...] = ()) -> Any:
        return await tried_again(work, waits, noted)

    monkeypatch.setattr(doing, "step", stepped)
    return waited


def registry_away(monkeypatch: pytest.MonkeyPatch, times: float) -> list[int]:
    """The registry takes no version so often; how often it was asked."""
    create, asked = MlflowStore.create_version, [0]

    def away(*given: Any, **more: Any) -> Any:
        asked[0] += 1
        if asked[0] <= times:
            raise UnavailableError("MLflow does not answer")
        return create(*given, **more)

    monkeypatch.setattr(MlflowStore, "create_version", away)
    return asked


def test_a_run_waits_hours_for_a_registry_that_is_away(
    works: Any, killed: Killed, waiting: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, draft = killed("patient", "before the registry is asked")
    registry_away(monkeypatch, times=28)
    gone_on(works, run)
    assert len(waiting) == 28 and sum(waiting) > 2 * 3600
    ended = works.context.store.runs.get_run(run.run_id)
    assert (ended.status, ended.model_version) == ("completed", "1")
    assert works.context.registry.get("patient", CHAMPION).signature == draft.version.signature


def test_a_run_that_waits_for_the_registry_can_be_cancelled(
    works: Any, killed: Killed, waiting: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = killed("given-up", "before the registry is asked")
    asked = registry_away(monkeypatch, times=math.inf)
    works.context.store.runs.request_cancel(run.run_id)
    assert works.context.store.runs.renew_lease(run.run_id, "me", 60.0)
    with pytest.raises(RunCancelledError, match="while it waited"), retrain.failure_recorded(works.context, run, "me"):
        gone_on(works, run)
    assert asked == [1] and waiting == [2.0]
    ended = works.context.store.runs.get_run(run.run_id)
    assert (ended.status, ended.model_version) == ("cancelled", None)
    assert works.context.registry.versions("given-up") == () and works.context.store.runs.get_draft(run.run_id) is None


def test_a_run_that_waits_to_promote_its_version_ends_with_a_challenger_where_it_is_cancelled(
    works: Any, killed: Killed, waiting: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = killed("recorded", "before the registry is asked")

    def away(*_: object, **__: object) -> None:
        raise UnavailableError("MLflow does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(ModelRegistry, "promote", away)
        works.context.store.runs.request_cancel(run.run_id)
        said = gone_on(works, run)["outcome"]
    assert said.startswith("version 1 stays challenger: an operator cancelled the run") and waiting == [2.0]
    ended = works.context.store.runs.get_run(run.run_id)
    assert (ended.status, ended.model_version) == ("completed", "1")
    assert count(works, "recorded") == (0, 0) and works.context.store.runs.get_draft(run.run_id) is None
