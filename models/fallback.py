"""The one door to the reference solvers, for problems that have no fast one."""

from __future__ import annotations

from models.problem import FloatArray, ProblemError, ProxSolution, SiteProblem
from models.saddle import Judged


def reference_prox(problem: SiteProblem, centre: FloatArray, penalty: float, ridge: float) -> ProxSolution:
    """Client step by CVXPY and Clarabel: slow, and only where the extra ``reference`` is installed.

    Parameters as for :func:`models.prox.robust_prox`. ``solver`` of the solution names it.

    Raises
    ------
    ProblemError
        Where the extra is missing; the text says how to install it.
    """
    try:
        from models.reference.prox import solve_prox
    except ModuleNotFoundError as missing:
        raise _missing(missing, "the client step over a box support") from missing
    return solve_prox(problem, centre, penalty, ridge)


def reference_polytope(weights: FloatArray, intercept: float, problem: SiteProblem) -> Judged:
    """Worst-case risk on a polytope support at a plane ``weights`` (P,) by CVXPY and Clarabel, with its cut.

    Raises
    ------
    ProblemError
        Where the extra is missing; the text says how to install it.
    ArithmeticError
        Where the solver finds no answer.
    """
    try:
        from models.reference.polytope import judge_polytope
    except ModuleNotFoundError as missing:
        raise _missing(missing, "the worst case over a polytope support") from missing
    return judge_polytope(weights, intercept, problem)


def _missing(missing: ModuleNotFoundError, what: str) -> Exception:
    if missing.name not in ("cvxpy", "clarabel"):
        return missing
    return ProblemError(
        f"{what} has no fast solver and needs the extra 'reference': pip install 'ballast-diagnosis[reference]'"
    )
