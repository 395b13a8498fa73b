"""AD-LPMM's operators against a solver of the subproblems that they answer."""

from __future__ import annotations

import numpy as np
import pytest

from models.methods.splitting.ad_lpmm_operators import (
    Duals,
    Heights,
    Local,
    Steps,
    move_heights,
)
from models.site_ambiguity.ball import MixtureBall, MixtureNorm


@pytest.mark.parametrize("p", ["l1", "l2", "linf"])
@pytest.mark.parametrize("theta", [0.0, 0.3])
@pytest.mark.parametrize("tight", [True, False])
def test_operators_solve_their_subproblems(p: MixtureNorm, theta: float, tight: bool) -> None:
    """Equations (7) to (10) against CVXPY on the augmented Lagrangian with its proximal term."""
    cp = pytest.importorskip("cvxpy", reason="the oracle needs the extra 'reference'")
    random, count = np.random.default_rng(5), 4
    q, c = np.full(count, 1 / count), 1.7
    t_old, z_old, eta_old = random.normal(size=(3, count))
    old = Heights(t_old, z_old, np.abs(eta_old), 0.3)
    local = Local(np.zeros((count, 1)), random.normal(size=count))
    duals = Duals(random.normal(size=count), np.zeros((count, 1)), random.normal(size=count))
    steps = Steps.of(c, 0.0, count, tight=tight)
    found = move_heights(old, local, duals, steps, q, MixtureBall(p, theta))

    def proximal(change: object, rows: np.ndarray, size: float) -> object:
        matrix = c * (size * np.eye(rows.shape[1]) - rows.T @ rows)
        return 0.5 * cp.quad_form(change, cp.psd_wrap(matrix))

    t, z, eta, gamma = cp.Variable(count), cp.Variable(count), cp.Variable(count, nonneg=True), cp.Variable(1)
    dual = {"l1": "inf", "l2": 2, "linf": 1}[p]
    one = np.eye(count)
    first = q @ t + theta * cp.norm(t, dual) + duals.sigma @ (t - z) - duals.zeta @ z
    first += c / 2 * cp.sum_squares(t - z - old.gamma - old.eta) + c / 2 * cp.sum_squares(z - local.risks)
    first += proximal(cp.hstack([t - old.t, z - old.z]), np.hstack([one, -one]), steps.first)
    cp.Problem(cp.Minimize(first)).solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12)
    np.testing.assert_allclose(found.t, t.value, atol=1e-6)
    np.testing.assert_allclose(found.z, z.value, atol=1e-6)
    rows = np.hstack([-np.ones((count, 1)), -one])
    apart = found.t - found.z - cp.hstack([gamma] * count) - eta
    second = -cp.sum(gamma) + duals.sigma @ apart + c / 2 * cp.sum_squares(apart)
    second += proximal(cp.hstack([gamma - old.gamma, eta - old.eta]), rows, steps.second)
    cp.Problem(cp.Minimize(second)).solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12)
    np.testing.assert_allclose(found.eta, eta.value, atol=1e-6)
    assert found.gamma == pytest.approx(float(gamma.value[0]), abs=1e-6)
