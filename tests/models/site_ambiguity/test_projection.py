"""Projection on the mixtures of a ball, against CVXPY."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.geometry.capped_simplex import CappedSimplex
from models.geometry.norms import vector_norm
from models.site_ambiguity.ball import MixtureBall, MixtureNorm, worst_mixture
from models.site_ambiguity.projection import nearest_mixture


@settings(max_examples=25, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from(["l1", "l2", "linf"]), st.sampled_from([0.05, 0.3, 1.0, 2.0]))
def test_no_mixture_of_the_ball_is_nearer(seed: int, norm: str, radius: float) -> None:
    cp = pytest.importorskip("cvxpy", reason="the oracle of this test needs the extra 'reference'")
    random = np.random.default_rng(seed)
    size = int(random.integers(1, 7))
    centre = random.dirichlet(np.ones(size))
    if size > 2:
        centre[0], centre[1] = 0.0, centre[0] + centre[1]
    point = random.normal(size=size) * random.choice([0.3, 3.0])
    ball = MixtureBall(norm, radius)
    found = nearest_mixture(point, centre, ball)
    assert found.min() >= 0 and found.sum() == pytest.approx(1.0, abs=1e-12)
    assert vector_norm(found - centre, ball.norm) <= radius * (1 + 1e-9) + 1e-12
    q = cp.Variable(size)
    order = {"l1": 1, "l2": 2, "linf": "inf"}[norm]
    program = cp.Problem(
        cp.Minimize(cp.sum_squares(q - point)), [q >= 0, cp.sum(q) == 1, cp.norm(q - centre, order) <= radius]
    )
    program.solve(solver=cp.CLARABEL)
    assert np.sum((found - point) ** 2) <= program.value * (1 + 1e-7) + 1e-9


def test_radius_0_is_the_centre_and_a_member_stays_where_it_is() -> None:
    centre, point = np.array([0.2, 0.3, 0.5]), np.array([0.3, 0.3, 0.4])
    np.testing.assert_array_equal(nearest_mixture(point, centre, MixtureBall("l2", 0.0)), centre)
    for norm in ("l1", "l2", "linf"):
        np.testing.assert_allclose(nearest_mixture(point, centre, MixtureBall(norm, 0.3)), point, atol=1e-12)


def test_a_share_of_at_most_one_half_is_a_ball_around_equal_weights() -> None:
    random = np.random.default_rng(0)
    for share in (0.5, 0.25):
        point = random.normal(size=8)
        ball = MixtureBall("linf", (1 - share) / (share * 8))
        capped = CappedSimplex.of_share(8, share).nearest(point)
        np.testing.assert_allclose(nearest_mixture(point, np.full(8, 1 / 8), ball), capped, atol=1e-12)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_of_500_sites_the_whole_ball_lies_behind_the_projection(norm: MixtureNorm) -> None:
    """From the nearest member no other member lies in the direction of the point, the farthest one included."""
    random, centre, ball = np.random.default_rng(0), np.full(500, 1 / 500), MixtureBall(norm, 0.1)
    for _ in range(3):
        point = random.normal(size=500)
        nearest = nearest_mixture(point, centre, ball)
        farthest = worst_mixture(point - nearest, centre, ball)
        assert farthest.value - (point - nearest) @ nearest <= 1e-9
