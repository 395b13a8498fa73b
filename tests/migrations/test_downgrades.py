"""What an older program would refuse, or take for something else, is taken out for it; all else stays as it is."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

from migrations import run
from services.contracts.plans.plan import Plan
from services.plant_simulator.assets import builtin_asset_type
from services.round_store.database.session import make_engine
from services.round_store.store import RoundStore
from tests.versions import a_round, an_answer

PUMP = builtin_asset_type("triplex-pump")
WORDS = {"0011": "waiting", "0010": "warm_start", "0006": "reveal"}
"""A word in plans that came with a revision."""
KEYS = {"plans": ("document", "name"), "plan_versions": ("document", "version"), "runs": ("plan", "plan_name")}
"""Where plans stand, and what tells them apart."""


def rows(url: str, statement: str) -> list[tuple[Any, ...]]:
    engine = make_engine(url)
    with engine.connect() as connection:
        found = [tuple(row) for row in connection.execute(text(statement))]
    engine.dispose()
    return found


def plans(url: str, table: str) -> dict[object, dict[str, Any]]:
    column, key = KEYS[table]
    return {key: json.loads(plan) for key, plan in rows(url, f"SELECT {key}, CAST({column} AS TEXT) FROM {table}")}


@pytest.fixture
def used(database_url: str) -> str:
    """A store with a plan in two versions, a run that ended and one that goes on, each with a state and a round."""
    store = RoundStore.open(database_url)
    store.asset_types.add(PUMP)
    store.plans.create(Plan(name="nightly", asset_type=PUMP.name, max_rounds=7))
    store.plans.update(Plan(name="nightly", asset_type=PUMP.name, max_rounds=9))
    for name, sites in (("nightly", ("a", "b")), ("weekly", ("a",))):
        plan = Plan(name=name, asset_type=PUMP.name, max_rounds=9, warm_start=True)
        ran = store.runs.begin_run(store.runs.create_run(plan).run_id, ())
        answers = (an_answer(site, status="accepted" if site == "a" else "open", question=0) for site in sites)
        store.runs.commit_round(a_round(ran.run_id, 1, *answers), {"point": np.zeros(3)})
        if name == "nightly":
            store.runs.finish_run(ran.run_id, "completed", "certified")
    store.close()
    return database_url


@pytest.mark.parametrize(("revision", "word"), WORDS.items())
def test_no_plan_has_a_word_that_came_later(used: str, revision: str, word: str) -> None:
    assert all(word in plan for table in KEYS for plan in plans(used, table).values())
    run.downgrade(used, f"{int(revision) - 1:04d}")
    for table, most_rounds in (
        ("plans", {"nightly": 9}), ("plan_versions", {1: 7, 2: 9}), ("runs", {"nightly": 9, "weekly": 9}),
    ):
        found = plans(used, table)
        assert not any(word in plan for plan in found.values()), table
        assert {key: plan["max_rounds"] for key, plan in found.items()} == most_rounds, "each its own"


def test_no_plan_has_any_word_of_what_a_run_reveals(used: str) -> None:
    """Each of them came with sums: a program from before refuses a plan that has one, at every start."""
    later = ("reveal", "min_cohort", "sum_threshold", "auditor", "noise", "largest_share", "sample_factor")
    assert all(set(later) <= set(plan) for plan in plans(used, "plans").values())
    run.downgrade(used, "0005")
    assert not any(set(later) & set(plan) for table in KEYS for plan in plans(used, table).values())


def test_answers_that_were_still_awaited_are_none_to_an_older_program(used: str) -> None:
    of_answers = "SELECT site_id, status FROM site_updates ORDER BY site_id, status"
    assert rows(used, of_answers) == [("a", "accepted"), ("a", "accepted"), ("b", "open")]
    run.downgrade(used, "0010")
    assert rows(used, of_answers) == [("a", "accepted"), ("a", "accepted")]


def test_states_of_runs_that_ended_are_gone_and_the_others_stay(used: str) -> None:
    of_states = "SELECT plan_name FROM run_states JOIN runs ON runs.run_id = run_states.run_id ORDER BY plan_name"
    assert rows(used, of_states) == [("nightly",), ("weekly",)]
    run.downgrade(used, "0009")
    assert rows(used, of_states) == [("weekly",)]


def test_answers_of_before_are_to_the_question_of_their_own_round(used: str) -> None:
    run.downgrade(used, "0010")
    assert run.upgrade(used) == run.head()
    assert rows(used, "SELECT DISTINCT question FROM site_updates") == [(0,)]


def test_every_plan_of_before_has_its_first_version(used: str) -> None:
    """One that is paused as well: without a version nobody could say what it was before its next change."""
    store = RoundStore.open(used)
    store.plans.create(Plan(name="weekly", asset_type=PUMP.name), paused=True)
    store.close()
    run.downgrade(used, "0004")
    assert run.upgrade(used) == run.head()
    assert rows(used, "SELECT name, version FROM plan_versions ORDER BY name") == [("nightly", 1), ("weekly", 1)]
