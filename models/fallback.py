"""The one door to the reference solvers, for problems that have no fast one."""

from __future__ import annotations

from models.problem import FloatArray, ProblemError, ProxSolution, SiteProblem


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
        if missing.name not in ("cvxpy", "clarabel"):
            raise
        raise ProblemError(
            "the client step over a box support has no fast solver and needs the extra 'reference': "
            "pip install 'ballast-diagnosis[reference]'"
        ) from missing
    return solve_prox(problem, centre, penalty, ridge)
