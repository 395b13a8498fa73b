"""What a flow run ends with in Prefect, and what of it is written down as the run's end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prefect.context import FlowRunContext

from flows.endings import ending
from flows.lease import IN_PROGRESS
from flows.orders import NOT_ASKED
from flows.retrain import failure_recorded
from flows.wiring import BUSY_SECONDS, FlowContext, open_context
from services.contracts.errors import ConflictError, UnavailableError
from services.contracts.history.run import Run
from services.contracts.plans.plan import Plan
from services.coordinator.run_state.run_errors import RunCancelledError
from services.process.settings import Settings
from services.round_store.runs.run_rows import OVERTAKEN
from services.round_store.store import RoundStore
from tests.flows.conftest import RIG

retrain_module: Any = import_module("flows.retrain")
LOCKED = UnavailableError("the database was locked", code="database_busy")


@pytest.mark.parametrize(("error", "kind", "name"), [
    (ConflictError("driven by another", code=IN_PROGRESS), "COMPLETED", "Skipped"),
    (ConflictError("nobody asked", code=NOT_ASKED), "FAILED", "Failed"),
    (RunCancelledError("an operator cancelled the run"), "CANCELLED", "Cancelled"),
    (LOCKED, "CRASHED", "Crashed"),
    (ConflictError("round 2 cannot be committed", code=OVERTAKEN), "CRASHED", "Crashed"),
    (UnavailableError("no NATS server"), "FAILED", "Failed"),
    (ValueError("two\nlines"), "FAILED", "Failed"),
])
def test_every_error_has_its_state_and_one_line(error: Exception, kind: str, name: str) -> None:
    state = ending(error)
    assert (state.type.value, state.name) == (kind, name)
    assert state.message is not None and "\n" not in state.message and "Traceback" not in state.message


@pytest.mark.parametrize(("auto", "tags", "kind"), [
    (True, [], "COMPLETED"), (False, [], "FAILED"), (False, ["run:7", "plan:x"], "COMPLETED"),
    (False, ["run:8"], "FAILED"),
])
def test_a_date_or_a_late_start_for_which_nobody_asks_is_skipped_and_an_order_refused(
    monkeypatch: pytest.MonkeyPatch, auto: bool, tags: list[str], kind: str
) -> None:
    """A flows process tags the flow run of a run, which may end while that one waits for its turn."""
    context = SimpleNamespace(flow_run=SimpleNamespace(auto_scheduled=auto, tags=tags, parameters={"run_id": "7"}))
    monkeypatch.setattr(FlowRunContext, "get", lambda: context)
    assert ending(ConflictError("its next date is", code=NOT_ASKED)).type.value == kind


@pytest.fixture
def run(new_sqlite: Callable[[], str], tmp_path: Path) -> Run:
    url = new_sqlite()
    settings = Settings.load(tmp_path, {"BALLAST_DATABASE_URL": url})
    store = RoundStore.open(settings.database)
    store.asset_types.add(RIG)
    made = store.runs.create_run(store.plans.create(Plan(name="nightly", asset_type="rig")).plan)
    store.close()
    (tmp_path / "url").write_text(url)
    return made


def test_a_database_that_went_away_ends_no_run(run: Run, tmp_path: Path) -> None:
    settings = Settings.load(tmp_path, {"BALLAST_DATABASE_URL": (tmp_path / "url").read_text()})
    with open_context(settings) as context:
        for error, status in ((LOCKED, "pending"), (UnavailableError("no NATS server"), "failed")):
            assert context.store.runs.renew_lease(run.run_id, "me", 60.0)
            with pytest.raises(UnavailableError), failure_recorded(context, run, "me"):
                raise error
            assert context.store.runs.get_run(run.run_id).status == status


def test_who_stood_still_while_another_drove_the_run_does_not_end_it(run: Run, tmp_path: Path) -> None:
    settings = Settings.load(tmp_path, {"BALLAST_DATABASE_URL": (tmp_path / "url").read_text()})
    with open_context(settings) as context:
        runs = context.store.runs
        for error in (UnavailableError("no plant answered"), RunCancelledError("an operator said so")):
            assert runs.renew_lease(run.run_id, "me", 0.0) and runs.renew_lease(run.run_id, "another", 0.0)
            with pytest.raises(ConflictError, match="taken over") as raised, failure_recorded(context, run, "me"):
                raise error
            assert ending(raised.value).type.value == "CRASHED" and runs.get_run(run.run_id).status == "pending"
            assert not runs.prolong_lease(run.run_id, "me", 60.0), "an expired lease of another is not its own"
            assert runs.prolong_lease(run.run_id, "another", 0.0), "its own that has expired is"
        runs.release_lease(run.run_id, "another")
        assert not runs.prolong_lease(run.run_id, "another", 60.0) and not runs.prolong_lease(run.run_id, "me", 60.0)
        with pytest.raises(ConflictError, match="taken over"), failure_recorded(context, run, "me"):
            raise UnavailableError("it was driven by another, and given back")
        assert runs.renew_lease(run.run_id, "me", 60.0) and runs.get_run(run.run_id).status == "pending"


def test_a_flow_waits_long_for_a_locked_database(run: Run, tmp_path: Path) -> None:
    settings = Settings.load(tmp_path, {"BALLAST_DATABASE_URL": (tmp_path / "url").read_text()})
    with open_context(settings) as context:
        assert isinstance(context, FlowContext)
        with context.store.engine.connect() as connection:
            waits = connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one()
    assert waits == 1000 * BUSY_SECONDS >= 300_000


def test_a_flow_run_that_finds_no_database_has_crashed_and_its_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was begun a moment before the server went away; a failure would call whoever is told of failures."""
    monkeypatch.setenv("BALLAST_HOME", str(tmp_path))
    monkeypatch.setenv("BALLAST_DATABASE_URL", f"postgresql://postgres@/postgres?host={tmp_path}")
    monkeypatch.setattr(retrain_module, "get_run_logger", lambda: logging.getLogger("ballast.flows"))
    monkeypatch.setattr(retrain_module, "end_at_once_when_told", lambda: None)
    state: Any = asyncio.run(retrain_module.retrain.fn("nightly", "0" * 32))
    assert state.type.value == "CRASHED" and state.message.endswith("; the run goes on in a new flow run")


def test_a_run_that_fails_in_its_flow_has_failed_in_the_store(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its state in Prefect alone would have it begun again as one whose process died."""
    async def nothing(_: object) -> None:
        pass

    async def drive(*_: object) -> None:
        raise ConflictError("too few sites")

    told = {
        "get_run_logger": lambda: logging.getLogger("ballast.flows"), "end_at_once_when_told": lambda: None,
        "this_flow_run": SimpleNamespace(id="a"), "name_flow_run": nothing, "drive": drive, "withdraw": lambda *_: None,
    }
    for name, stand_in in told.items():
        monkeypatch.setattr(retrain_module, name, stand_in)
    monkeypatch.setenv("BALLAST_HOME", str(tmp_path))
    monkeypatch.setenv("BALLAST_DATABASE_URL", url := (tmp_path / "url").read_text())
    state: Any = asyncio.run(retrain_module.retrain.fn("nightly", run.run_id))
    assert (state.type.value, state.message) == ("FAILED", "too few sites")
    with open_context(Settings.load(tmp_path, {"BALLAST_DATABASE_URL": url})) as context:
        found = context.store.runs.get_run(run.run_id)
        assert (found.status, found.reason) == ("failed", "too few sites")
        assert context.store.runs.renew_lease(run.run_id, "another", 60.0) is False
