"""The worst mixture of the sites: against CVXPY, its corners, and how long it takes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.basics import FloatArray, ProblemError
from models.geometry.norms import vector_norm
from models.site_ambiguity.ball import MixtureBall, MixtureNorm, pull_into_ball, worst_mixture

NORMS: list[MixtureNorm] = ["l1", "l2", "linf"]


def _drawn(seed: int, kind: str) -> tuple[FloatArray, FloatArray]:
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 9))
    risks, centre = random.uniform(0, 2, count), random.dirichlet(np.ones(count))
    if kind == "ties":
        risks = np.round(2 * risks) / 2
    if kind == "empty sites" and count > 1:
        centre[random.permutation(count)[: int(random.integers(1, count))]] = 0.0
        centre /= centre.sum()
    if kind == "scales":
        risks = risks**12
    return risks, centre


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", ["plain", "ties", "empty sites", "scales"])
@settings(max_examples=10, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1), radius=st.sampled_from([0.2, 0.0, 1e-6, 0.03, 0.7, 1.0, 1.5, 2.0, 50.0])
)
def test_agrees_with_cvxpy(seed: int, norm: MixtureNorm, radius: float, kind: str) -> None:
    cp = pytest.importorskip("cvxpy", reason="the oracle of this test needs the extra 'reference'")
    risks, centre = _drawn(seed, kind)
    ball = MixtureBall(norm, radius)
    worst = worst_mixture(risks, centre, ball)
    assert worst.weights.min() >= 0
    assert worst.weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert vector_norm(worst.weights - centre, norm) <= radius + 1e-12
    assert worst.value == pytest.approx(float(worst.weights @ risks), rel=1e-14)

    if radius == 0:
        assert (worst.weights == centre).all()
        return
    scale, step = float(risks.max()), min(radius, 2.0)
    change = cp.Variable(risks.shape[0])
    size = cp.norm(change, {"l1": 1, "l2": 2, "linf": "inf"}[norm])
    constraints = [cp.sum(change) == 0, centre + step * change >= 0, size <= 1]
    program = cp.Problem(cp.Maximize((risks / scale) @ change), constraints)
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    reference = scale * (float(risks / scale @ centre) + step * float(program.value))
    assert worst.value == pytest.approx(reference, rel=1e-8, abs=1e-9 * scale)


@pytest.mark.parametrize("norm", NORMS)
def test_no_mixture_of_the_ball_is_worse(norm: MixtureNorm) -> None:
    """Against many members of Q, with more sites than the oracle's tests have."""
    random = np.random.default_rng(3)
    risks, centre = random.uniform(0, 1, 40), random.dirichlet(np.full(40, 0.5))
    for radius in (0.01, 0.1, 0.6):
        ball = MixtureBall(norm, radius)
        worst = worst_mixture(risks, centre, ball)
        for _ in range(300):
            other = pull_into_ball(centre + random.normal(size=40) * radius, centre, ball)
            assert vector_norm(other - centre, norm) <= radius * (1 + 1e-12)
            assert other @ risks <= worst.value + 1e-12


@pytest.mark.parametrize("norm", NORMS)
def test_ends_of_the_radius(norm: MixtureNorm) -> None:
    """Radius 0 is the centre; a wide ball is the worst site; one site is itself; equal risks are one number."""
    risks, centre = np.array([0.2, 0.9, 0.9, 0.4]), np.array([0.4, 0.1, 0.2, 0.3])
    none = worst_mixture(risks, centre, MixtureBall(norm, 0.0))
    assert (none.weights == centre).all() and none.value == risks @ centre
    for radius in (2.0, 1e9):
        ball = MixtureBall(norm, radius)
        assert ball.covers_simplex(centre)
        worst = worst_mixture(risks, centre, ball)
        assert worst.value == pytest.approx(0.9, rel=1e-15)
        assert worst.weights[[0, 3]] == pytest.approx([0, 0])
    assert not MixtureBall(norm, 0.5).covers_simplex(centre)
    assert worst_mixture(np.array([0.3]), np.ones(1), MixtureBall(norm, 0.5)).value == 0.3
    assert worst_mixture(np.full(4, 0.7), centre, MixtureBall(norm, 0.5)).value == pytest.approx(0.7)
    assert worst_mixture(np.zeros(4), centre, MixtureBall(norm, 0.5)).value == 0.0


def test_known_answers() -> None:
    """Worked by hand: q0 = (.5, .3, .2), risks (0, 1, 2), radius .2."""
    risks, centre = np.array([0.0, 1.0, 2.0]), np.array([0.5, 0.3, 0.2])
    assert worst_mixture(risks, centre, MixtureBall("l1", 0.2)).weights == pytest.approx([0.4, 0.3, 0.3])
    assert worst_mixture(risks, centre, MixtureBall("linf", 0.2)).weights == pytest.approx([0.3, 0.3, 0.4])
    step = 0.2 / np.sqrt(2)
    assert worst_mixture(risks, centre, MixtureBall("l2", 0.2)).weights == pytest.approx([0.5 - step, 0.3, 0.2 + step])


@pytest.mark.parametrize("norm", NORMS)
def test_no_member_of_the_ball_is_worse_for_many_sites(norm: MixtureNorm) -> None:
    random = np.random.default_rng(0)
    risks, centre = random.uniform(0, 1, 500), random.dirichlet(np.ones(500))
    for radius in (0.01, 0.1, 0.5, 0.9):
        ball = MixtureBall(norm, radius)
        worst = worst_mixture(risks, centre, ball)
        assert vector_norm(worst.weights - centre, norm) <= radius + 1e-12
        for _ in range(20):
            other = pull_into_ball(worst.weights + 0.01 * random.normal(size=500) / 500, centre, ball)
            assert risks @ other <= worst.value + 1e-12


@pytest.mark.parametrize("norm", NORMS)
def test_a_ball_covers_the_simplex_when_it_reaches_the_farthest_corner(norm: MixtureNorm) -> None:
    centre = np.array([0.7, 0.2, 0.1])
    farthest = max(float(vector_norm(corner - centre, norm)) for corner in np.eye(3))
    assert not MixtureBall(norm, farthest - 1e-9).covers_simplex(centre)
    assert MixtureBall(norm, farthest + 1e-9).covers_simplex(centre)


def test_members_stay_and_others_come_in() -> None:
    centre, ball = np.array([0.5, 0.3, 0.2]), MixtureBall("l2", 0.1)
    member = np.array([0.45, 0.3, 0.25])
    np.testing.assert_allclose(pull_into_ball(member, centre, ball), member, atol=1e-16)
    assert (pull_into_ball(np.zeros(3), centre, ball) == centre).all()
    pulled = pull_into_ball(np.array([-1.0, 0.0, 5.0]), centre, ball)
    assert pulled.min() >= 0 and pulled.sum() == pytest.approx(1) and vector_norm(pulled - centre, "l2") <= 0.1 + 1e-15


def test_refuses_a_ball_that_is_none() -> None:
    with pytest.raises(ProblemError, match="must be one of l1, l2, linf, got 'l3'"):
        MixtureBall("l3", 0.1)  # type: ignore[arg-type]
    for radius in (-0.1, np.nan, np.inf):
        with pytest.raises(ProblemError, match="finite number at or above 0"):
            MixtureBall("l2", radius)


def test_what_all_risks_have_in_common_moves_no_weight() -> None:
    """Large risks that hardly differ: all of these numbers are exact."""
    centre, apart = np.array([0.5, 0.3, 0.2]), np.array([0.0, 1.0, 3.0])
    for radius in (0.1, 0.4, 0.7):
        ball = MixtureBall("l2", radius)
        plain = worst_mixture(apart, centre, ball).weights
        np.testing.assert_allclose(worst_mixture(2.0**30 + apart * 2.0**-20, centre, ball).weights, plain, rtol=1e-12)
