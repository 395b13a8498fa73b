r"""DRFL with the hinge loss on a box, transport norm l1, and an l1 ball over the clients: one small linear program.

For tuning only: hundreds of fits that are compared by their scores. Proposition 6.3 has 4 P multipliers a row. For a
box and the l1 norm they can be taken out: what moving feature p of a row can gain is ``max(|w_p| - lam, 0)`` times the
room to the wall, and the rooms are data. So client s needs only ``up_s >= w - lam_s`` and ``down_s >= -w - lam_s``,
both (P,) and at or above 0, and a row

    alpha >= 1 - y (<w, x> + b) + <up, room below> + <down, room above>         (y = +1; the rooms swap for y = -1)
    alpha >= 1 + y (<w, x> + b) + <up, room above> + <down, room below> - kappa lam_s

with ``z_s = rho lam_s + mean(alpha)``. The worst mixture over the l1 ball is Theorem 4.3 with p = 1:
``min q0'(z + eta) + theta height`` over gamma, eta >= 0 and ``height >= |z_s + gamma + eta_s|`` for all s. With rho 0
the multiplier lam is free of charge, and the rows are the plain hinge.

Solved by HiGHS, which starts each solve from the last one's basis: only a few coefficients change from one setting to
the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import highspy
import numpy as np
from scipy.sparse import csr_array

from models.basics import FloatArray
from models.geometry.supports import BoxSupport
from models.problem import SiteProblem


@dataclass(frozen=True)
class Fit:
    """Weights (P + 1,), the intercept last, and the optimum."""

    weights: FloatArray
    value: float


class HingeProgram:
    """The program of some clients, for any rho, kappa (the same for all clients) and theta.

    Variables: w (P,) and the intercept; for each client lam, up (P,), down (P,), alpha (N_s,); gamma, eta (S,), height.
    """

    def __init__(self, sites: Sequence[SiteProblem], shares: FloatArray) -> None:
        """Build it for rho 0 and theta 0; the specs of the sites give the box and nothing else."""
        self._n_features, self._shares, n_sites = sites[0].features.shape[1], shares, len(sites)
        p = self._n_features
        sizes = [1 + 2 * p + site.labels.shape[0] for site in sites]
        self._lam = p + 1 + np.concatenate([[0], np.cumsum(sizes)[:-1]])
        ball = p + 1 + sum(sizes)
        self._n = ball + n_sites + 2
        blocks, self._flips = list[FloatArray](), list[tuple[int, int]]()
        for site, lam in zip(sites, self._lam, strict=True):
            block = _client_rows(site, int(lam), self._n)
            first = sum(each.shape[0] for each in blocks) + site.labels.shape[0]
            self._flips += [(first + i, int(lam)) for i in range(site.labels.shape[0])]
            blocks.append(block)
        n_data = sum(block.shape[0] for block in blocks)
        self._mean = np.zeros((n_sites, self._n))
        for s, site in enumerate(sites):
            alpha = int(self._lam[s]) + 1 + 2 * p
            self._mean[s, alpha : alpha + site.labels.shape[0]] = 1.0 / site.labels.shape[0]
        self._ball_rows = [(n_data + 2 * s, n_data + 2 * s + 1) for s in range(n_sites)]
        limits = [np.concatenate([np.ones(2 * site.labels.shape[0]), np.zeros(2 * p)]) for site in sites]
        self._solver = self._stated(np.vstack([*blocks, self._heights(ball)]), np.concatenate(limits), ball)

    def solve(self, radius: float, label_flip_cost: float, theta: float) -> Fit:
        """The optimum for this setting."""
        solver, n_sites = self._solver, self._shares.shape[0]
        for row, lam in self._flips:
            solver.changeCoeff(row, lam, label_flip_cost)
        for s, (above, below) in enumerate(self._ball_rows):
            solver.changeColCost(int(self._lam[s]), float(self._shares[s]) * radius)
            solver.changeCoeff(above, int(self._lam[s]), -radius)
            solver.changeCoeff(below, int(self._lam[s]), radius)
        solver.changeColCost(self._n - 1, theta)
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            solver.clearSolver()  # the last basis was of no help
            solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise RuntimeError(f"HiGHS found no optimum for {n_sites} clients: {solver.getModelStatus()}")
        point = np.array(solver.getSolution().col_value)
        return Fit(point[: self._n_features + 1], float(solver.getInfo().objective_function_value))

    def _heights(self, ball: int) -> FloatArray:
        """Two rows a client: ``height -+ (z_s + gamma + eta_s) >= 0``."""
        n_sites = self._shares.shape[0]
        found = np.zeros((2 * n_sites, self._n))
        for s in range(n_sites):
            size = self._mean[s].copy()
            size[[ball, ball + 1 + s]] = 1.0
            found[2 * s], found[2 * s + 1] = -size, size
        found[:, -1] = 1.0
        return found

    def _stated(self, rows: FloatArray, limits: FloatArray, ball: int) -> highspy.Highs:
        """``rows @ variables >= limits``, handed to HiGHS."""
        matrix, program = csr_array(rows), highspy.HighsLp()
        program.num_col_, program.num_row_ = self._n, rows.shape[0]
        cost = self._shares @ self._mean
        cost[ball + 1 : ball + 1 + self._shares.shape[0]] = self._shares
        lower = np.zeros(self._n)
        lower[: self._n_features + 1], lower[ball] = -highspy.kHighsInf, -highspy.kHighsInf
        program.col_cost_, program.col_lower_ = cost, lower
        program.col_upper_ = np.full(self._n, highspy.kHighsInf)
        program.row_lower_ = np.concatenate([limits, np.zeros(rows.shape[0] - limits.shape[0])])
        program.row_upper_ = np.full(rows.shape[0], highspy.kHighsInf)
        program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        program.a_matrix_.start_, program.a_matrix_.index_ = matrix.indptr, matrix.indices
        program.a_matrix_.value_ = matrix.data
        solver = highspy.Highs()  # type: ignore[no-untyped-call]
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", 1)
        solver.passModel(program)
        return solver


def _client_rows(site: SiteProblem, lam: int, width: int) -> FloatArray:
    """Rows of a client, at or above 1 (keep, then flip) or 0 (up, then down); the price of a flip is left open."""
    x, y, box = site.features, site.labels[:, None], site.spec.support
    if not isinstance(box, BoxSupport):
        raise TypeError("the linear program is for a box")
    n, p = x.shape
    below, above = x - box.low, box.high - x
    keep = np.hstack([np.where(y > 0, below, above), np.where(y > 0, above, below)])
    found = np.zeros((2 * n + 2 * p, width))
    moves, alpha = slice(lam + 1, lam + 1 + 2 * p), lam + 1 + 2 * p
    found[:n, : p + 1] = y * np.hstack([x, np.ones((n, 1))])
    found[n : 2 * n, : p + 1] = -found[:n, : p + 1]
    found[:n, moves] = -keep
    found[n : 2 * n, moves] = -np.hstack([keep[:, p:], keep[:, :p]])
    for i in range(n):
        found[[i, n + i], alpha + i] = 1.0
    for j in range(p):
        found[2 * n + j, [j, lam, lam + 1 + j]] = -1.0, 1.0, 1.0
        found[2 * n + p + j, [j, lam, lam + 1 + p + j]] = 1.0, 1.0, 1.0
    return found
