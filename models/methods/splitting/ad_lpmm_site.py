r"""Client step of AD-LPMM (DRFL, operator C_s), exact or on a drawn share of the rows.

    argmin over (lam, alpha, w_s) in Omega_s:  zeta pi - <psi, w_s> + c/2 ||w - w_s||^2 + c/2 (pi - z)^2,
    pi = rho lam + mean alpha

alpha is bounded from below only, so pi can be any number from r_s(w_s) on and (lam, alpha) is gone from the problem.
With ``b = z - zeta / c`` and ``centre = w + psi / c_w`` (c_w = c in the paper) what is left is, up to a constant,

    min  c/2 (r_s(w_s) - b)_+^2 + c_w/2 ||w_s - centre||^2,      pi = max(r_s(w_s), b),

the local step of ``models.prox.bundle`` for any loss and support.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.basics import Arrays, FloatArray
from models.geometry.norms import dual_norm
from models.methods.answer_arrays import minorant_arrays
from models.methods.guard import MOVES, Guard, Minorant, asked, guarded_minorant, moved, step_minorant
from models.methods.row_account import Accounted, of_sum
from models.methods.site_answers import ProxCutSite, RiskSite, vector_account
from models.problem import SiteProblem
from models.prox.bundle import RiskPenalty, local_step
from models.worst_case.risk import site_cut

LEAST_ROWS = 20
"""A drawn subset has at least so many rows: the step of a handful would tell of single ones."""


@dataclass(frozen=True)
class DrflSite:
    """Risk at a point and the client step.

    Message: ``point`` (D,) to judge, ``centre`` (D,), ``target`` b (), ``stiffness`` c / c_w (), 0 for no step, and
    ``draw`` (), the number that the subset is drawn by. Answer: as :class:`RiskSite` at the point, ``local_point`` w_s
    (D,), ``local_risk`` pi (), and a minorant of the risk. Without a step w_s is the point and pi its risk.

    Parameter ``batch``: share of the rows that the step is taken on, 1 for all, never fewer than ``least_rows`` (see
    :class:`models.methods.local_sgd.site.LocalStepsSite`). The risk, its cut and the minorant are
    of all rows whatever it is, so the certificate is exact.
    """

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> dict[str, FloatArray]:
        """Exact risk and cut at the point; the step; what it proves."""
        return self.accounted(problem, message, parameters).arrays

    def accounted(
        self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float], guard: Guard | None = None
    ) -> Accounted:
        """The answer with the rows of its slopes; where the step ends is a sum of other cuts than the last ones."""
        first = RiskSite().accounted(problem, message, parameters, guard)
        answer = first.arrays
        target, stiffness = float(message["target"]), float(message["stiffness"])
        question = asked(problem, *(message[name] for name in ("point", "centre", "target", "stiffness", "draw")))
        if stiffness == 0:
            point = message["point"]
            still = {"local_point": point, "local_risk": answer["risk"]}
            found = guarded_minorant(_cut_minorant(point, problem), point, problem, guard, question)
            account = vector_account(found.rows, found.slope, found.swing, problem, first.account)
            return Accounted({**answer, **still, **minorant_arrays(found)}, account)
        least = int(parameters.get("least_rows", LEAST_ROWS))
        chosen = sampled_rows(problem, parameters["batch"], int(message["draw"]), least)
        rows, centre = problem if chosen is None else _part(problem, chosen), message["centre"]

        def stepped(number: int, random: np.random.Generator) -> tuple[FloatArray, Minorant, FloatArray | None]:
            if number > MOVES:
                swing = np.zeros_like(answer["swing"]) if "swing" in answer else None
                nothing = np.zeros(problem.labels.shape[0])
                return centre, Minorant(0.0, np.zeros_like(centre), 0.0, swing, nothing), None
            beside = moved(centre, number, random) if number else centre
            step = local_step(rows, beside, RiskPenalty(-stiffness * target, stiffness), start=message["point"])
            ended = np.asarray(step.proven_point)
            if chosen is None:
                return ended, step_minorant(step), None
            sampled = None if step.rows is None else of_sum(step.rows, chosen, problem.labels.shape[0])
            return ended, _cut_minorant(ended, problem), sampled

        def rows_of(step: tuple[FloatArray, Minorant, FloatArray | None]) -> list[FloatArray]:
            return [each for each in (step[1].rows, step[2]) if each is not None]

        ended, found, sampled = (
            stepped(0, np.random.default_rng(0)) if guard is None else guard.choose(question, stepped, rows_of)
        )
        answer |= {"local_point": ended, "local_risk": np.array(max(site_cut(ended, rows).risk, target))}
        account = vector_account(found.rows, found.slope, found.swing, problem, first.account)
        if chosen is not None:
            account = account.with_vector(sampled, ended - centre, problem.labels.shape[0], whole=account.whole)
        return Accounted({**answer, **minorant_arrays(found)}, account)

    def shapes(self, dimension: int, n_swings: int = 0) -> dict[str, tuple[int, ...]]:
        """Shapes of a valid answer."""
        return {**ProxCutSite().shapes(dimension, n_swings), "local_point": (dimension,), "local_risk": ()}


def _cut_minorant(point: FloatArray, problem: SiteProblem) -> Minorant:
    """What the exact risk at a point proves everywhere."""
    cut = site_cut(point, problem)
    norm = dual_norm(point[: problem.features.shape[1]], problem.spec.transport_norm)
    return Minorant(cut.offset(point, norm), cut.slope, cut.norm_weight, cut.swing, cut.rows)


def sampled_rows(
    problem: SiteProblem, batch: float, draw: int, least: int = LEAST_ROWS
) -> NDArray[np.intp] | None:
    """Which of the site's rows a share of them is, drawn by a number, so that a repeated message meets the same rows.

    None: all. ``least`` is how many they are at least, a site's own number; never below :data:`LEAST_ROWS`.
    """
    count = problem.labels.shape[0]
    wanted = max(math.ceil(batch * count), min(count, max(least, LEAST_ROWS)))
    return None if wanted >= count else np.sort(np.random.default_rng(draw).choice(count, wanted, replace=False))


def _part(problem: SiteProblem, rows: NDArray[np.intp]) -> SiteProblem:
    counts = None if problem.row_weights is None else problem.row_weights[rows] / problem.row_weights[rows].mean()
    return SiteProblem(problem.features[rows], problem.labels[rows], problem.spec, counts)
