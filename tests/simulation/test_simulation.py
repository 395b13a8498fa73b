"""A few seeds of the simulation, and that it finds what is planted; ``make soak`` is the whole."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from models import basics
from models.basics import FloatArray, rounded
from services.site_agent.limits import questions
from services.site_agent.vault.isolation.row_groups import next_version
from services.site_agent.vault.records import row_batches
from tests.simulation.fuzz import fuzz
from tests.simulation.loop import SimulationLoop
from tests.simulation.planted import MISTAKES, planted
from tests.simulation.plants import GROUPS_FROM
from tests.simulation.processes import CURRENT, Process
from tests.simulation.rotations import rotations
from tests.simulation.scenario import draw_scenario
from tests.simulation.soak import outcomes, soak
from tests.simulation.works import Outcome, simulate

FOUND_BY = {
    "a link of the audit trail is skipped": 0,
    "a lease is never prolonged": 2,
    "an answer counts although its key was taken away": 201,
    "a resumed run counts its last round twice": 11,
    "a cut of an earlier run is kept of a plant whose rows changed": 6,
    "a version that its run recorded before a crash ends the run": 6,
    "a run that is evaluated asks its plants once more": 6,
}
"""Cheap ones, each with a seed that finds it; ``python -m tests.simulation --planted all`` finds all."""
TWICE = (16, 19)
"""Seeds that are played again; 19 opens answers to an auditor, in boxes whose keys are drawn for one message."""

GROUPED_SEED = 60123
"""Weeks in which few rows of a plant change that shows them by fives."""


@cache
def sound(seed: int) -> Outcome:
    """What comes of a seed in the product as it is."""
    return simulate(seed)


def test_nothing_is_broken_in_a_few_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    found = soak(1018, 6, 1)
    assert found.broken == {}
    assert len(found.faults) > 5 and found.rounds > 6
    assert "6 seeds" in capsys.readouterr().out


def test_seeds_give_the_same_in_processes_of_their_own() -> None:
    beside = {each.seed: each for each in outcomes(TWICE, 2)}
    for seed in TWICE:
        assert beside[seed].digest == sound(seed).digest and not beside[seed].broken
    assert len({each.digest for each in beside.values()}) == len(TWICE)


@pytest.mark.parametrize("seed", TWICE)
def test_the_same_seed_gives_the_same_bytes(seed: int) -> None:
    once, again = sound(seed), simulate(seed)
    # Not the steps: a wait that something cached makes needless the second time is one fewer.
    assert once.faults and once == replace(again, steps=once.steps)


@pytest.mark.parametrize(("name", "seed"), FOUND_BY.items())
def test_a_planted_mistake_is_found(name: str, seed: int) -> None:
    assert sound(seed).broken == ()
    with planted(name):
        assert simulate(seed).broken != ()


def test_rows_that_come_or_go_by_fewer_than_their_plant_says_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of seeds from ``GROUPS_FROM`` on, which the planted mistakes do not come to."""
    assert sound(GROUPED_SEED).broken == () and GROUPED_SEED > GROUPS_FROM
    monkeypatch.setattr(row_batches, "next_version", lambda groups, rows, least: next_version(groups, rows, 1))
    (found,) = simulate(GROUPED_SEED).broken
    assert "plant-1 showed versions that differ by 2 rows, not by 5 or more" in found


def test_an_honest_run_that_asks_what_no_honest_run_asks_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants that take every question for one that is too steep."""
    assert not draw_scenario(TWICE[0]).liar
    monkeypatch.setattr(questions, "risk_floor", lambda weights, problem: 1e9 * float(np.abs(weights).max()))
    assert any(found.startswith("questions: run ") for found in simulate(TWICE[0]).broken)


def test_a_number_that_goes_wrong_breaks_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though nothing comes of it."""

    def careless(point: FloatArray, share: float) -> FloatArray:
        np.log(np.zeros(1))
        return rounded(point, share)

    monkeypatch.setattr(basics, "rounded", careless)
    (found,) = simulate(TWICE[0]).broken
    assert found.startswith("divide by zero encountered in log (test_simulation.py, line ")


@pytest.mark.parametrize("seed", [71038, 71377])
def test_on_a_box_whose_ball_lets_no_model_beat_zero_weights_a_run_ends_with_that(seed: int) -> None:
    """Their plants refused the second question, which lay at weights of 1e11."""
    found = sound(seed)
    assert found.broken == () and all(end.startswith("completed: the certified gap is at or") for end in found.ends)


def test_every_planted_text_stands_in_the_product() -> None:
    assert len(MISTAKES) == len({each.name for each in MISTAKES}) == 26
    for each in MISTAKES:
        with planted(each.name):
            pass


def test_no_round_is_lost_while_keys_change() -> None:
    found = rotations(25)
    assert found.broken == {} and found.rounds > 3
    assert set(found.ends) <= {"completed", "failed"}


def test_only_what_a_site_signed_is_admitted() -> None:
    found = fuzz(6000, seed=1)
    assert sum(count for what, count in found.items() if what.startswith(("refused", "admitted"))) == 6000
    forms = {f"admitted: signed by the site, {form}, changed by it" for form in ("BLS1", "BLS2")}
    assert forms <= set(found), "the site itself may change what it says, and nobody else"


def test_time_passes_by_timers_alone_and_threads_run_in_the_loop() -> None:
    loop = SimulationLoop(random.Random(0))

    async def work() -> tuple[float, str]:
        await asyncio.sleep(3600.0)
        return loop.time(), await asyncio.to_thread(lambda: "done")

    moment, said = loop.run_until_complete(work())
    loop.close()
    assert moment == pytest.approx(3600.0, abs=1e-3) and said == "done"


def test_a_killed_process_reaches_nothing_and_one_held_up_goes_on_later() -> None:
    loop, seen = SimulationLoop(random.Random(0)), []

    async def tick(name: str) -> None:
        for _ in range(4):
            await asyncio.sleep(1.0)
            process = CURRENT.get()
            assert process is not None
            process.check()
            seen.append((name, round(loop.time())))

    async def work() -> None:
        killed, held = Process("killed", crash_at=3), Process("held")
        for each in (killed, held):
            each.start(tick(each.name))
        loop.call_later(1.5, setattr, held, "held_until", 10.0)
        await asyncio.sleep(20.0)
        assert not killed.alive

    loop.run_until_complete(work())
    loop.close()
    # The third await of the one is the sleep of its second tick; the other stands still from 1.5 to 10.
    assert sorted(seen) == [("held", 1), ("held", 10), ("held", 11), ("held", 12), ("killed", 1)]
