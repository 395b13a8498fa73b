"""Certificates that hold, certificates that do not, and the robustness radius of a diagnosis."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.basics import ProblemError, TransportNorm
from models.cuts.certificate import CertificateError, check_certificate, combined_certificate
from models.evaluation.robustness_radius import robustness_radius
from models.geometry.norms import steepest_move
from models.geometry.supports import BoxSupport
from models.multiclass import predict_class, predict_scores
from models.problem import Certificate


def test_a_certificate_that_holds_is_returned() -> None:
    assert check_certificate(Certificate(1.0, 0.9)) == Certificate(1.0, 0.9)
    assert check_certificate(Certificate(1.0, 0.9)).gap == pytest.approx(0.1)
    assert check_certificate(Certificate(math.inf, 0.0, 0.0)).gap == math.inf
    assert check_certificate(Certificate(0.0, 0.0)).gap == 0.0


def test_rounding_is_closed_by_lowering_the_lower_bound() -> None:
    assert check_certificate(Certificate(1.0, 1.0 + 1e-12)) == Certificate(1.0, 1.0)
    for upper, crossed in ((1e-3, 9e-10), (1.0, 9e-10), (1e3, 9e-7)):
        assert check_certificate(Certificate(upper, upper + crossed)) == Certificate(upper, upper)
        with pytest.raises(CertificateError, match="lies above the upper bound"):
            check_certificate(Certificate(upper, upper + 1.2 * crossed))


@pytest.mark.parametrize(
    "broken",
    [Certificate(1.0, 1.001), Certificate(math.nan, 0.0), Certificate(1.0, math.nan), Certificate(1.0, 0.5, 1.5),
     Certificate(1.0, 0.5, -0.1)],
)
def test_a_certificate_that_does_not_hold_raises(broken: Certificate) -> None:
    with pytest.raises(CertificateError) as failure:
        check_certificate(broken)
    assert "\n" not in str(failure.value)


def test_heads_add_up() -> None:
    both = combined_certificate([Certificate(1.0, 0.9, 1.0), Certificate(3.0, 2.9, 0.75)])
    assert both == Certificate(4.0, pytest.approx(3.8), 0.75)
    assert both.gap == pytest.approx(0.05)
    with pytest.raises(ProblemError, match="no certificate"):
        combined_certificate([])


@settings(max_examples=150, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), n_heads=st.sampled_from([1, 3]), norm=st.sampled_from(["l1", "l2", "linf"]))
def test_the_radius_is_the_smallest_move_that_flips(seed: int, n_heads: int, norm: TransportNorm) -> None:
    random = np.random.default_rng(seed)
    weights, row = random.normal(size=(n_heads, 4)), random.uniform(0, 1, (1, 3))
    radius = robustness_radius(weights, row, norm)[0]
    before = predict_class(weights, row)[0]
    if n_heads == 1:
        planes = [weights[0, :3] * (1 if before == 0 else -1)]
    else:
        planes = [weights[j, :3] - weights[before, :3] for j in range(n_heads) if j != before]
    after = [predict_class(weights, row + 1.0001 * radius * steepest_move(plane, norm))[0] for plane in planes]
    assert any(each != before for each in after)
    for _ in range(30):
        move = random.normal(size=3)
        move *= (
            0.9999 * radius / {"l1": np.abs(move).sum(), "l2": np.linalg.norm(move), "linf": np.abs(move).max()}[norm]
        )
        assert predict_class(weights, row + move)[0] == before


def test_zero_weights() -> None:
    rows = np.array([[0.1, 0.2]])
    assert robustness_radius(np.array([[0.0, 0.0, 1.0]]), rows, "l2") == math.inf
    assert robustness_radius(np.array([[0.0, 0.0, 0.0]]), rows, "l2") == 0.0
    assert robustness_radius(np.array([[1.0, 0.0, 0.5], [1.0, 0.0, 0.0]]), rows, "l1") == math.inf
    assert robustness_radius(np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]), rows, "linf") == 0.0
    with pytest.raises(ProblemError, match="weights must be"):
        robustness_radius(np.zeros((1, 2)), rows, "l2")


@settings(max_examples=60, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), n_heads=st.sampled_from([1, 3]), norm=st.sampled_from(["l1", "l2", "linf"]))
def test_on_a_box_the_radius_is_that_of_the_smallest_move_inside(seed: int, n_heads: int, norm: TransportNorm) -> None:
    """Held to a linear or conic program for every rival; some rows lie at walls, some classes are out of reach."""
    cp = pytest.importorskip("cvxpy", reason="the oracle needs the extra 'reference'")
    random = np.random.default_rng(seed)
    weights = random.normal(size=(n_heads, 4)) * random.choice([0.0, 1.0], (n_heads, 4), p=[0.2, 0.8])
    row = np.clip(random.uniform(-0.3, 1.3, (1, 3)), 0.0, 1.0)
    box = BoxSupport(np.zeros(3), np.ones(3))
    found = robustness_radius(weights, row, norm, support=box)[0]
    assert found >= robustness_radius(weights, row, norm)[0] * (1 - 1e-12)
    scores = predict_scores(weights, row)[0]
    if n_heads == 1:
        sides = [(weights[0], scores[0])] if scores[0] >= 0 else [(-weights[0], -scores[0])]
    else:
        winner = int(scores.argmax())
        sides = [(weights[winner] - weights[j], scores[winner] - scores[j]) for j in range(3) if j != winner]
    least = np.inf
    for plane, lead in sides:
        move = cp.Variable(3)
        size = cp.norm(move, {"l1": 1, "l2": 2, "linf": "inf"}[norm])
        program = cp.Problem(cp.Minimize(size), [plane[:3] @ move + lead <= 0, row[0] + move >= 0, row[0] + move <= 1])
        program.solve(solver=cp.CLARABEL)
        least = min(least, float(program.value))
    assert found == pytest.approx(least, rel=1e-5, abs=1e-6)


def test_bounds_near_enough_by_their_distance() -> None:
    """A relative gap says nothing where the optimum is 0."""
    small = Certificate(1e-7, 0.0, scale=1.0)
    assert small.gap == 1.0 and small.meets(1e-3) and not small.meets(1e-4 / 2) and not small.meets(1e-3, 0.0)
    assert small.meets(1e-9, 1e-6) and not Certificate(1e-7, 0.0).meets(1e-3)
    assert combined_certificate([small, small]).scale == 2.0
    assert check_certificate(Certificate(1.0, 1.0 + 1e-12, scale=3.0)).scale == 3.0
