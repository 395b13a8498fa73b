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

from models.basics import Arrays, FloatArray
from models.geometry.norms import dual_norm
from models.methods.row_account import Accounted
from models.methods.site_answers import ProxCutSite, RiskSite, minorant, step_minorant, vector_account
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

    def accounted(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> Accounted:
        """The answer with the rows of its slopes; where the step ends is a sum of other cuts than the last ones."""
        asked = RiskSite().accounted(problem, message, parameters)
        answer = asked.arrays
        target, stiffness = float(message["target"]), float(message["stiffness"])
        if stiffness == 0:
            still = {"local_point": message["point"], "local_risk": answer["risk"]}
            return Accounted({**answer, **still, **_cut_minorant(message["point"], problem)}, asked.account)
        least = int(parameters.get("least_rows", LEAST_ROWS))
        rows = sampled_rows(problem, parameters["batch"], int(message["draw"]), least)
        height = RiskPenalty(-stiffness * target, stiffness)
        step = local_step(rows, message["centre"], height, start=message["point"])
        answer |= {"local_point": step.point, "local_risk": np.array(max(step.risk, target))}
        if rows is problem:
            account = vector_account(step.rows, step.slope, step.swing, problem, asked.account)
            return Accounted({**answer, **step_minorant(step)}, account.partial())
        cut = site_cut(step.point, problem)
        account = vector_account(cut.rows, cut.slope, cut.swing, problem, asked.account)
        return Accounted({**answer, **_cut_minorant(step.point, problem)}, account.partial())

    def shapes(self, dimension: int, n_swings: int = 0) -> dict[str, tuple[int, ...]]:
        """Shapes of a valid answer."""
        return {**ProxCutSite().shapes(dimension, n_swings), "local_point": (dimension,), "local_risk": ()}


def _cut_minorant(point: FloatArray, problem: SiteProblem) -> dict[str, FloatArray]:
    """What the exact risk at a point proves everywhere."""
    cut = site_cut(point, problem)
    norm = dual_norm(point[: problem.features.shape[1]], problem.spec.transport_norm)
    return minorant(cut.offset(point, norm), cut.slope, cut.norm_weight, cut.swing)


def sampled_rows(problem: SiteProblem, batch: float, draw: int, least: int = LEAST_ROWS) -> SiteProblem:
    """The site with a share of its rows, drawn by a number, so that a repeated message meets the same rows.

    ``least`` is how many they are at least, a site's own number; never below :data:`LEAST_ROWS`.
    """
    count = problem.labels.shape[0]
    wanted = max(math.ceil(batch * count), min(count, max(least, LEAST_ROWS)))
    if wanted >= count:
        return problem
    rows = np.sort(np.random.default_rng(draw).choice(count, wanted, replace=False))
    counts = None if problem.row_weights is None else problem.row_weights[rows] / problem.row_weights[rows].mean()
    return SiteProblem(problem.features[rows], problem.labels[rows], problem.spec, counts)
