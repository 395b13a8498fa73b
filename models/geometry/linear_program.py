r"""Small linear programs, some of whose unknowns may be whole numbers, by HiGHS (Huangfu and Hall 2018).

    min_x  <cost, x>    subject to    least <= rows x <= most,    low <= x <= high,    x_j whole where ``whole`` says so

The only file that imports it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray, ProblemError


@dataclass(frozen=True)
class LinearProgram:
    """See the module. cost, low, high : (n,). rows : (r, n). least, most : (r,). Ends may be infinite."""

    cost: FloatArray
    rows: FloatArray
    least: FloatArray
    most: FloatArray
    low: FloatArray
    high: FloatArray
    whole: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Optimum:
    """What was found: ``solved``, or why not in the solver's ``words``.

    ``point`` (n,) is a minimiser where it is solved. ``bound`` is at or below the least value where whole numbers are
    asked and time ran out; minus infinity: nothing is known.
    """

    solved: bool
    point: FloatArray
    bound: float
    words: str


def solve_linear_program(program: LinearProgram, seconds: float = math.inf) -> Optimum:
    """Solve by the simplex method, and by branch and bound where whole numbers are asked.

    To HiGHS's own tolerances, which are absolute (1e-7): state programs whose numbers are of order one. ``seconds``
    ends a search over whole numbers. ``ProblemError`` for costs or rows that are not finite, and ends that are no
    numbers. What HiGHS refuses, as it does entries from 1e15 on, is not solved.
    """
    if not all(np.isfinite(part).all() for part in (program.cost, program.rows)) or any(
        np.isnan(part).any() for part in (program.least, program.most, program.low, program.high)
    ):
        raise ProblemError("a linear program must be of finite numbers")
    import highspy  # at the first program: most who import this state none

    solver = highspy.Highs()
    for name, value in (("output_flag", False), ("parallel", "off"), ("mip_rel_gap", 0.0), ("time_limit", seconds)):
        solver.setOptionValue(name, value)
    if solver.passModel(_stated(program)) == highspy.HighsStatus.kError:
        return Optimum(False, np.zeros(0), -math.inf, "refused by the solver")
    solver.run()
    status = solver.getModelStatus()
    solved = status == highspy.HighsModelStatus.kOptimal
    bound = float(solver.getInfo().mip_dual_bound) if program.whole is not None else -math.inf
    point = np.array(solver.getSolution().col_value, dtype=np.float64) if solved else np.zeros(0)
    return Optimum(solved, point, bound, str(solver.modelStatusToString(status)).lower())


def _stated(program: LinearProgram) -> object:
    """The program as HiGHS takes it: the entries of the rows that are not 0, column by column."""
    import highspy

    stated, columns = highspy.HighsLp(), program.rows.T
    stated.num_row_, stated.num_col_ = program.rows.shape
    stated.col_cost_, stated.col_lower_, stated.col_upper_ = program.cost, program.low, program.high
    stated.row_lower_, stated.row_upper_ = program.least, program.most
    filled = columns != 0
    stated.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    stated.a_matrix_.start_ = np.append(0, np.cumsum(filled.sum(axis=1))).astype(np.int32)
    stated.a_matrix_.index_ = filled.nonzero()[1].astype(np.int32)
    stated.a_matrix_.value_ = columns[filled]
    if program.whole is not None:
        kinds = highspy.HighsVarType
        stated.integrality_ = [kinds.kInteger if each else kinds.kContinuous for each in program.whole]
    return stated
