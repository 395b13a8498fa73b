"""What a server step on sums does once and not once a question, a cohort or a cut: counted, with the same result."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from models.basics import Arrays
from models.cuts import cut_model
from models.cuts.contradiction import find_contradiction
from models.cuts.evidence import Evidence, with_answers, with_exchange
from models.methods.bundle import asked_level, level
from models.methods.bundle import cohort as cohort_module
from models.solvers import active_set, conic_interior_point
from tests.models.methods.bundle.cohort_run import FOUR, MakeSites, Run, ServerView, plants_of, shapes_of, view


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[int]:
    """A list that grows with every call of a function where a module calls it."""
    calls, function = list[int](), getattr(module, name)

    def called(*terms: Any, **named: Any) -> Any:
        calls.append(1)
        return function(*terms, **named)

    monkeypatch.setattr(module, name, called)
    return calls


def run_of(make_sites: MakeSites, server_view: ServerView, cohorts: int = 1) -> Run:
    """Four plants in a cohort, or six in two."""
    sites = make_sites(seed=3, **FOUR) if cohorts == 1 else plants_of("hinge", "l2", False)
    names = list(sites)
    return Run(sites, view(server_view, sites), {f"c{c}": tuple(names[c::cohorts]) for c in range(cohorts)})


def answers_of(run: Run) -> dict[str, Arrays]:
    return run.rounds.answers(run.server.messages(run.state, run.problem), shapes_of(run))


def test_an_exchange_is_taken_in_as_its_questions_one_by_one_are(
    make_sites: MakeSites, server_view: ServerView
) -> None:
    run = run_of(make_sites, server_view, cohorts=2)
    run.round()
    answers, before = answers_of(run), run.state.evidence
    single = [
        {cohort: {name: array[k] for name, array in told.items()} for cohort, told in answers.items()}
        for k in range(len(run.state.points))
    ]
    del single[2]["c1"]
    one_by_one = before
    for point, told in zip(run.state.points, single, strict=True):
        one_by_one = with_answers(replace(one_by_one, exchanges=before.exchanges), run.problem, point, told)
    at_once = with_exchange(before, run.problem, run.state.points, single)
    for field in fields(Evidence):
        first, second = (np.asarray(getattr(each, field.name)) for each in (at_once, one_by_one))
        assert first.dtype == second.dtype and first.tobytes() == second.tobytes(), field.name


def test_of_honest_cohorts_none_is_looked_at_by_itself(
    make_sites: MakeSites, server_view: ServerView, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, calls = run_of(make_sites, server_view, cohorts=2), counted(monkeypatch, cohort_module, "find_contradiction")
    for _ in range(6):
        run.round()
    assert not calls


@pytest.mark.parametrize("place", range(6))
def test_a_lie_in_any_question_of_a_message_is_found_as_in_all_cohorts_one_by_one(
    place: int, make_sites: MakeSites, server_view: ServerView
) -> None:
    run = run_of(make_sites, server_view, cohorts=2)
    for _ in range(3):
        run.round()
    answers = answers_of(run)
    risks = answers["c1"]["risk"].copy()
    risks[place] *= 0.6
    answers["c1"] = answers["c1"] | {"risk": risks, "cut_height": np.minimum(answers["c1"]["cut_height"], risks)}
    grown = cohort_module._recorded(run.state, run.problem, answers)  # noqa: SLF001 - what both ways look at
    alone = {f"c{c}": find_contradiction(grown, run.problem, c) for c in range(2)}
    found = run.server.contradictions(run.state, run.problem, answers)
    assert found == {cohort: each for cohort, each in alone.items() if each is not None} and set(found) == {"c1"}


def test_copies_of_cuts_are_looked_for_once_for_all_levels(
    make_sites: MakeSites, server_view: ServerView, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once among the cuts as they were told, for the minimum, and once among those without their last digits."""
    run = run_of(make_sites, server_view)
    for _ in range(3):
        run.round()
    answers = answers_of(run)
    calls, projected = counted(monkeypatch, cut_model, "distinct_cuts"), counted(monkeypatch, asked_level, "project")
    run.server.step(run.state, run.problem, answers)
    assert len(projected) == 6 and len(calls) == 2


def test_minima_of_few_weights_are_found_without_an_interior_point(
    make_sites: MakeSites, server_view: ServerView, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And prove the bound that the interior point proves."""
    pytest.importorskip("daqp")
    run = run_of(make_sites, server_view)
    minima = counted(monkeypatch, conic_interior_point, "solve_cone_program")
    by_interior_point = 0
    for _ in range(8):
        answers = answers_of(run)
        before = len(minima)
        found = run.server.step(run.state, run.problem, answers)
        by_interior_point += len(minima) - before
        with monkeypatch.context() as without:
            without.setattr(active_set, "daqp", None)
            other = run.server.step(run.state, run.problem, answers)
        assert found.evidence.lower == pytest.approx(other.evidence.lower, rel=1e-8, abs=1e-10)
        run.state = found
    assert by_interior_point <= 4  # of 8 minima and 48 projections


def test_sums_over_sites_are_the_same_by_the_cuts_that_count(
    make_sites: MakeSites, server_view: ServerView, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    for few in (level._FEW_HELD, -1):  # noqa: SLF001 - which of two ways is the matter here
        monkeypatch.setattr(level, "_FEW_HELD", few)
        run = run_of(make_sites, server_view, cohorts=2)
        for _ in range(4):
            run.round()
        asked.append(run.state.centre.tobytes())
    assert asked[0] == asked[1]
