"""Linear programs: the optimum of SciPy's interface to the same solver, whole numbers, and what has no optimum."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest
from scipy.optimize import linprog

from models.basics import ProblemError
from models.geometry.linear_program import LinearProgram, solve_linear_program


def drawn(seed: int, r: int = 12, n: int = 4) -> LinearProgram:
    random = np.random.default_rng(seed)
    rows, inside = random.normal(size=(r, n)), random.normal(size=n)
    rows[random.uniform(size=(r, n)) < 0.3] = 0.0
    least, most = rows @ inside - random.uniform(size=r), rows @ inside + random.uniform(size=r)
    most[0] = least[0]
    least[1] = -np.inf
    return LinearProgram(random.normal(size=n), rows, least, most, inside - 2.0, np.append(inside[1:] + 9.0, np.inf))


@pytest.mark.parametrize("seed", range(8))
def test_the_optimum_is_that_of_scipys_interface(seed: int) -> None:
    program = drawn(seed)
    two_sided, same = program.least < program.most, program.least == program.most
    below = two_sided & np.isfinite(program.least)
    found = linprog(
        program.cost, A_ub=np.vstack([program.rows[two_sided], -program.rows[below]]),
        b_ub=np.append(program.most[two_sided], -program.least[below]), A_eq=program.rows[same],
        b_eq=program.most[same], bounds=np.column_stack([program.low, program.high]), method="highs",
    )
    ours = solve_linear_program(program)
    assert ours.solved == (found.status == 0)
    if ours.solved:
        assert program.cost @ ours.point == pytest.approx(found.fun, rel=1e-9)
        values = program.rows @ ours.point
        assert (values >= program.least - 1e-7).all() and (values <= program.most + 1e-7).all()


def test_unknowns_that_are_whole_are_whole() -> None:
    one = np.ones(2)
    knapsack = LinearProgram(
        np.array([-5.0, -4.0]), np.array([[6.0, 4.0], [1.0, 2.0]]), -np.inf * one, np.array([24.0, 6.0]), 0.0 * one,
        np.inf * one,
    )
    np.testing.assert_allclose(solve_linear_program(knapsack).point, [3.0, 1.5], atol=1e-9)
    whole = LinearProgram(**{**vars(knapsack), "whole": np.array([True, True])})
    found = solve_linear_program(whole)
    np.testing.assert_allclose(found.point, [4.0, 0.0], atol=1e-9)
    assert found.bound == pytest.approx(-20.0)


def test_what_has_no_optimum_says_why() -> None:
    row, one = np.array([[1.0, 1.0]]), np.ones(2)
    empty = solve_linear_program(LinearProgram(one, row, np.array([3.0]), np.array([3.0]), 0.0 * one, one))
    up = np.inf * one
    endless = solve_linear_program(LinearProgram(-one, row, np.array([0.0]), up[:1], 0.0 * one, up))
    refused = solve_linear_program(LinearProgram(one, 1e20 * row, np.zeros(1), np.ones(1), 0.0 * one, one))
    assert not empty.solved and "infeasible" in empty.words
    assert not endless.solved and "unbounded" in endless.words
    assert not refused.solved and "refused" in refused.words
    for cost, end in ((np.nan, 1.0), (np.inf, 1.0), (1.0, np.nan)):
        with pytest.raises(ProblemError, match="finite"):
            solve_linear_program(LinearProgram(cost * one, row, np.zeros(1), np.array([end]), 0.0 * one, one))


def test_it_prints_nothing_and_leaves_no_thread_of_python(capfd: pytest.CaptureFixture[str]) -> None:
    before = threading.active_count()
    assert solve_linear_program(drawn(0)).words
    sys.stdout.flush()
    assert capfd.readouterr() == ("", "") and threading.active_count() == before
