r"""DRFL with the hinge loss on a box, transport norm l1, and an l1 ball over the clients: one small linear program.

For tuning only: hundreds of fits that are compared by their scores. Proposition 6.3 has 4 P multipliers a row. For a
box and the l1 norm they can be taken out: what moving feature p of a row can gain is ``max(|w_p| - lam, 0)`` times the
room to the wall, and the rooms are data. So client s needs only ``up_s >= w - lam_s`` and ``down_s >= -w - lam_s``,
both (P,) and at or above 0, and a row

    alpha >= 1 - y <w, x> + <up, room below> + <down, room above>               (y = +1; the rooms swap for y = -1)
    alpha >= 1 + y <w, x> + <up, room above> + <down, room below> - kappa lam_s

with ``z_s = rho lam_s + mean(alpha)``. The worst mixture over the l1 ball is Theorem 4.3 with p = 1:
``min q0'(z + eta) + theta max_s |z_s + gamma + eta_s|`` over gamma and eta >= 0. Solved by HiGHS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import block_diag, bmat, csr_array, eye_array, hstack, vstack

from models.problem import BoxSupport, FloatArray, SiteProblem


@dataclass(frozen=True)
class Fit:
    """Weights (P,), without an intercept, and the optimum."""

    weights: FloatArray
    value: float


def solve(sites: Sequence[SiteProblem], shares: FloatArray, theta: float) -> Fit:
    """Minimise ``max_q sum_s q_s r_s(w)`` over the l1 ball of radius theta around the shares (S,)."""
    n_features, n_sites = sites[0].features.shape[1], len(sites)
    robust = [site.spec.radius > 0 for site in sites]
    blocks, own_w, limits = [], [], []
    for site, counted in zip(sites, robust, strict=True):
        of_w, own, limit = _robust_rows(site) if counted else _plain_rows(site)
        own_w.append(of_w)
        blocks.append(own)
        limits.append(limit)
    sizes = [block.shape[1] for block in blocks]
    start = n_features + np.concatenate([[0], np.cumsum(sizes)])
    rows = hstack([vstack(own_w), block_diag(blocks)])
    risk = np.zeros((n_sites, start[-1]))  # z = risk @ variables
    lower = np.zeros(start[-1])
    lower[:n_features] = -np.inf
    for s, site in enumerate(sites):
        n = site.labels.shape[0]
        risk[s, start[s + 1] - n : start[s + 1]] = 1.0 / n
        if robust[s]:
            risk[s, start[s]] = site.spec.radius
    cost = shares @ risk
    limit = np.concatenate(limits)
    if theta > 0:
        # variables of the ball: gamma, eta (S,), height >= |z + gamma + eta|
        ones, unit = np.ones((n_sites, 1)), np.eye(n_sites)
        above = np.hstack([risk, ones, unit, -ones])
        below = np.hstack([-risk, -ones, -unit, -ones])
        rows = vstack([bmat([[rows, csr_array((rows.shape[0], n_sites + 2))]]), csr_array(np.vstack([above, below]))])
        limit = np.append(limit, np.zeros(2 * n_sites))
        cost = np.concatenate([cost, [0.0], shares, [theta]])
        lower = np.concatenate([lower, [-np.inf], np.zeros(n_sites + 1)])
    bounds = np.column_stack([lower, np.full_like(lower, np.inf)])
    found = linprog(cost, A_ub=csr_array(rows), b_ub=limit, bounds=bounds, method="highs")
    if found.x is None:
        raise RuntimeError(f"HiGHS found no solution: {found.message}")
    return Fit(np.asarray(found.x[:n_features]), float(found.fun))


def _plain_rows(site: SiteProblem) -> tuple[csr_array, csr_array, FloatArray]:
    n = site.labels.shape[0]
    return csr_array(-site.labels[:, None] * site.features), csr_array(-eye_array(n)), np.full(n, -1.0)


def _robust_rows(site: SiteProblem) -> tuple[csr_array, csr_array, FloatArray]:
    """Rows on w, rows on the client's own variables (lam, up, down, alpha), limits."""
    x, y, box = site.features, site.labels[:, None], site.spec.support
    if not isinstance(box, BoxSupport):
        raise TypeError("the linear program is for a box")
    n, p = x.shape
    below, above = x - box.low, box.high - x
    keep = np.hstack([np.where(y > 0, below, above), np.where(y > 0, above, below)])
    flip = np.hstack([keep[:, p:], keep[:, :p]])
    one, none, minus = np.ones((n, 1)), np.zeros((n, 1)), -np.eye(n)
    ones = np.ones((p, 1))
    kappa = site.spec.label_flip_cost
    zero, unit, rest = np.zeros((p, p)), np.eye(p), np.zeros((p, n))
    own = np.vstack([
        np.hstack([none, keep, minus]),
        np.hstack([-kappa * one, flip, minus]),
        np.hstack([-ones, -unit, zero, rest]),
        np.hstack([-ones, zero, -unit, rest]),
    ])  # fmt: skip
    of_w = np.vstack([-y * x, y * x, unit, -unit])
    return csr_array(of_w), csr_array(own), np.concatenate([np.full(2 * n, -1.0), np.zeros(2 * p)])
