"""Two who change at the same moment, on PostgreSQL, where both may read before either writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from api.models import unlearning
from api.models.schemas import Unlearning
from api.plans import service as plans
from api.web.etags import etag_of, expecting
from services.contracts.errors import BallastError
from services.contracts.plans.plan import Plan
from services.identity.enrolment_codes import issue_code
from services.round_store.store import Repositories
from tests.api.conftest import FOUNDER, MODEL, SITES, World, a_plan, open_world, public_key
from tests.waiting import wait_until

NEVER_RAN = "tidy"


@pytest.fixture
def world(tmp_path: Path, new_postgresql: Callable[[], str], mlflow_settings: dict[str, str]) -> Iterator[World]:
    """The application on PostgreSQL, with a plan that nothing refers to."""
    with open_world(tmp_path, new_postgresql(), mlflow_settings) as opened:
        opened.backend.store.plans.create(a_plan(NEVER_RAN))
        yield opened


def is_one_waiting(world: World) -> bool:
    """Whether a transaction waits for a lock of another."""
    here = "wait_event_type = 'Lock' AND datname = current_database()"
    wanted = text(f"SELECT count(*) FROM pg_stat_activity WHERE {here}")
    with world.backend.store.engine.connect() as connection:
        return bool(connection.scalar(wanted))


def at_once(
    world: World, first: Callable[[Repositories], Any], second: Callable[[], Any],
    then: Callable[[Repositories], Any] = lambda unit: None,
) -> Any:
    """What ``second`` gives, or its refusal, that came while ``first`` was made and not yet committed."""
    with ThreadPoolExecutor(1) as pool:
        with world.backend.store.atomic() as unit:
            first(unit)
            other = pool.submit(second)
            wait_until(lambda: is_one_waiting(world), "transaction that waits")
            then(unit)
        try:
            return other.result()
        except BallastError as refusal:
            return refusal


def changed(plan: Plan, **fields: Any) -> Plan:
    return Plan.model_validate(dict(plan) | fields)


def test_of_two_changes_of_one_state_the_second_is_refused(world: World) -> None:
    before = world.backend.store.plans.get(MODEL)
    mine, theirs = changed(before.plan, max_rounds=11), changed(before.plan, max_rounds=12)
    outcome = at_once(
        world, lambda unit: unit.plans.update(theirs, actor="ada"),
        lambda: plans.update(world.backend, FOUNDER, mine, expected=expecting(etag_of(before))),
    )
    assert getattr(outcome, "code", outcome) == "precondition_failed"
    assert world.backend.store.plans.get(MODEL).plan == theirs


def test_a_plan_that_is_put_away_meanwhile_is_not_triggered(world: World) -> None:
    outcome = at_once(
        world, lambda unit: unit.plans.set_archived(NEVER_RAN, True),
        lambda: plans.trigger(world.backend, FOUNDER, NEVER_RAN),
    )
    assert getattr(outcome, "code", outcome) == "plan_archived"
    assert world.backend.store.runs.unfinished_runs(NEVER_RAN) == []


def test_a_plan_is_paused_once(world: World) -> None:
    at_once(
        world, lambda unit: unit.plans.set_paused(MODEL, True),
        lambda: plans.set_paused(world.backend, FOUNDER, MODEL, True),
    )
    assert "plan.pause" not in [each.action for each in world.backend.store.audit.list_events()]


def test_a_plant_that_leaves_takes_no_change_of_its_plan_back(world: World) -> None:
    before = world.backend.store.plans.get(MODEL).plan
    at_once(
        world, lambda unit: unit.plans.update(changed(before, max_rounds=12), actor="ada"),
        lambda: unlearning.unlearn(world.backend, FOUNDER, MODEL, Unlearning(site=SITES[0], reason="it was sold")),
        lambda unit: unit.audit.append(actor="ada", role=None, action="plan.update", target=f"plan:{MODEL}"),
    )
    after = world.backend.store.plans.get(MODEL).plan
    assert (after.sites, after.max_rounds) == (tuple(SITES[1:]), 12)


def test_a_plant_that_leaves_while_a_code_of_it_is_used_waits_for_that(world: World) -> None:
    """Codes, then sites, then the trail: who takes them the other way round and who waits for him wait for ever."""
    code = issue_code(
        SITES[0], "triplex-pump", datetime.now(UTC), timedelta(days=1), created_by="ada", certificate=None,
        replaces_key=True,
    ).stored
    world.backend.store.enrolment_codes.add(code)
    outcome = at_once(
        world, lambda unit: unit.enrolment_codes.use(code.record.code_id, public_key()),
        lambda: unlearning.unlearn(world.backend, FOUNDER, MODEL, Unlearning(site=SITES[0], reason="it was sold")),
        lambda unit: unit.sites.rotate_key(SITES[0], public_key(), datetime.now(UTC)),
    )
    assert outcome.model == MODEL, outcome
    assert world.backend.store.sites.get(SITES[0]).status == "removed"
