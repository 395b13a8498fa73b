"""Active sets: the solution of the interior point, or none; nothing is taken from DAQP on trust."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import daqp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.basics import FloatArray
from models.solvers import active_set
from models.solvers.active_set import solve_by_active_sets
from models.solvers.cone_program import ConeProgram
from models.solvers.conic_interior_point import solve_cone_program

_TOLERANCE = 1e-9
DRAWN = {
    "seed": st.integers(0, 2**32 - 1), "n": st.integers(2, 9), "m": st.integers(1, 25),
    "cones": st.lists(st.integers(2, 6), max_size=2), "curved": st.booleans(),
}


def drawn(seed: int, n: int, m: int, cones: list[int], curved: bool) -> ConeProgram:
    """A program with an interior, on a box, most rows of which hold nothing up."""
    random = np.random.default_rng(seed)
    rows = np.vstack([random.normal(size=(m, n)), np.eye(n), -np.eye(n), random.normal(size=(sum(cones), n))])
    slack = np.concatenate([random.uniform(0.1, 1.0, m), np.full(2 * n, 3.0), np.zeros(sum(cones))])
    inside, ends = random.normal(size=n), m + 2 * n + np.cumsum(cones, dtype=int)
    for size, end in zip(cones, ends, strict=True):
        slack[end - size + 1 : end] = random.normal(size=size - 1)
        slack[end - size] = np.linalg.norm(slack[end - size + 1 : end]) + random.uniform(0.1, 1.0)
    curvature = random.uniform(0.5, 2.0, n) if curved else np.zeros(n)
    return ConeProgram(curvature, random.normal(size=n), rows, rows @ inside + slack, tuple(cones), inside)


def value(program: ConeProgram, point: FloatArray) -> float:
    """Objective."""
    return float(0.5 * program.curvature @ point**2 + program.linear @ point)


def is_optimal(program: ConeProgram, point: FloatArray, duals: FloatArray) -> bool:
    """All conditions of optimality, stated once more: feasible, multipliers in the cones, stationary, complementary."""
    slack, split = program.limits - program.rows @ point, program.limits.size - sum(program.cones)
    held, at = [slack[:split].min() >= -1e-8, duals[:split].min() >= 0.0], split
    for size in program.cones:
        for part, least in ((slack, -1e-8), (duals, -1e-12)):
            held.append(part[at] - np.linalg.norm(part[at + 1 : at + size]) >= least)
        at += size
    tall = 1.0 + np.abs(duals).max()
    still = np.abs(program.curvature * point + program.linear + duals @ program.rows).max() <= 1e-8 * tall
    return all(held) and bool(still) and abs(float(slack @ duals)) <= 1e-7 * tall


@settings(max_examples=150)
@given(**DRAWN)
def test_a_solution_is_that_of_the_interior_point(**kind: Any) -> None:
    program = drawn(**kind)
    found = solve_by_active_sets(program, _TOLERANCE)
    if found is not None:
        assert is_optimal(program, found.point, found.multipliers)
        wanted = value(program, solve_cone_program(program).point)
        assert value(program, found.point) == pytest.approx(wanted, rel=1e-6, abs=1e-7)


def test_most_programs_are_solved() -> None:
    """With curvature nearly all, with cones or without; a linear objective where no cone holds it up."""
    for cones, curved, least in (([], True, 40), ([5], True, 38), ([3, 4], True, 36), ([], False, 36)):
        solved = [solve_by_active_sets(drawn(seed, 8, 20, cones, curved), _TOLERANCE) for seed in range(40)]
        assert sum(each is not None for each in solved) >= least, (cones, curved)


def test_a_cone_holds_up_a_linear_objective_of_few_columns() -> None:
    """To all digits, whatever the tolerance; of many columns it is left to the interior point, without a try."""
    solved = 0
    for seed in range(40):
        program = drawn(seed, 5, 20, [5], False)
        found = solve_by_active_sets(program, 1e-4)
        if found is not None:
            solved += 1
            wanted = value(program, solve_cone_program(program).point)
            assert value(program, found.point) == pytest.approx(wanted, rel=1e-9, abs=1e-10)
            assert max(found.primal_residual, found.dual_residual, found.gap) <= 1e-11
    assert solved >= 36


def test_a_linear_objective_of_many_columns_with_a_cone_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(active_set, "daqp", SimpleNamespace(solve=lambda *_, **__: asked.append(1)))
    assert solve_by_active_sets(drawn(1, 13, 20, [5], False), _TOLERANCE) is None and not asked


def test_the_same_program_has_the_same_solution_to_the_last_bit() -> None:
    for seed in range(10):
        first, second = (solve_by_active_sets(drawn(seed, 8, 20, [4], True), _TOLERANCE) for _ in range(2))
        assert first is not None and second is not None
        assert first.point.tobytes() == second.point.tobytes()
        assert first.multipliers.tobytes() == second.multipliers.tobytes()


@pytest.mark.parametrize("spoilt", ["point", "multipliers", "feasible point"])
def test_a_false_solution_is_none(spoilt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """DAQP says that it solved the program, and tells another point or other multipliers, each a little off."""
    program = drawn(4, 6, 15, [4], True)
    assert solve_by_active_sets(program, _TOLERANCE) is not None

    def false(*terms: Any, **numbers: Any) -> Any:
        step, height, flag, told = daqp.solve(*terms, **numbers)
        if spoilt == "multipliers":
            told = told | {"lam": told["lam"] * (1.0 + 1e-6)}
        return step * (1.0 - 1e-6) + 1e-6 * (spoilt == "point"), height, flag, told

    monkeypatch.setattr(active_set, "daqp", SimpleNamespace(solve=false))
    found = solve_by_active_sets(program, _TOLERANCE)
    assert found is None or is_optimal(program, found.point, found.multipliers)


def test_what_cannot_be_solved_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """No point is feasible; a number is none; there is no DAQP."""
    program = drawn(4, 6, 15, [], True)
    rows = np.vstack([program.rows, np.eye(6)[:1], -np.eye(6)[:1]])
    limits = np.concatenate([program.limits, [-1.0, -1.0]])
    torn = ConeProgram(program.curvature, program.linear, rows, limits, (), program.start)
    assert solve_by_active_sets(torn, _TOLERANCE) is None
    spoilt = ConeProgram(program.curvature, program.linear * np.nan, program.rows, program.limits, (), program.start)
    assert solve_by_active_sets(spoilt, _TOLERANCE) is None
    monkeypatch.setattr(active_set, "daqp", None)
    assert solve_by_active_sets(program, _TOLERANCE) is None


@pytest.mark.parametrize("spoilt", ["curvature", "linear", "limits"])
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_daqp_is_not_asked_about_what_is_no_number(
    spoilt: str, number: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is compiled, and says of no such number that it is one."""
    asked, program = list[int](), drawn(4, 6, 15, [4], True)
    monkeypatch.setattr(active_set, "daqp", SimpleNamespace(solve=lambda *_, **__: asked.append(1)))
    values = getattr(program, spoilt).copy()
    values[0] = number
    assert solve_by_active_sets(replace(program, **{spoilt: values}), _TOLERANCE) is None and not asked


@pytest.mark.parametrize("seed", [0, 2])
def test_a_program_that_holds_many_rows_goes_on_from_those_that_it_held(seed: int) -> None:
    """Its first step takes more exchanges of rows than a later one has."""
    random = np.random.default_rng(seed)
    program = drawn(seed, 60, 150, [6], True)
    program = replace(program, linear=30.0 * random.normal(size=60))
    found = solve_by_active_sets(program, _TOLERANCE)
    assert found is not None and found.iterations > 1 and is_optimal(program, found.point, found.multipliers)
    assert np.count_nonzero(found.multipliers) > 40


@pytest.mark.parametrize("both", [0.0, 5.0])
def test_multipliers_of_rows_that_hold_nothing_up_are_no_solution(both: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """They may cancel, so that feasibility and slopes see nothing of them: a bound that they prove is none."""
    program = ConeProgram(np.ones(1), np.zeros(1), np.array([[1.0], [-1.0]]), np.ones(2), start=np.zeros(1))
    told = {"lam": np.array([both, both])}
    monkeypatch.setattr(active_set, "daqp", SimpleNamespace(solve=lambda *given, **named: (np.zeros(1), 0.0, 1, told)))
    assert (solve_by_active_sets(program, _TOLERANCE) is None) == (both > 0.0)
