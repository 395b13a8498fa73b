"""Rows that count more than once: a weight of k is as k copies of the row, for every loss, support and norm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.basics import ProblemError
from models.geometry.supports import BoxSupport, PolytopeSupport
from models.losses.catalogue import get_loss
from models.methods.bundle.wafl import priced_risk
from models.methods.catalogue import METHODS
from models.problem import RobustSpec, SiteProblem
from models.prox.hinge import robust_prox
from models.simulation.federation import train
from models.worst_case.risk import site_cut

LOSSES = ("hinge", "smooth_hinge", "logistic", "huber", "epsilon_insensitive", "pinball")
NORMS = ("l1", "l2", "linf")


def weighted_and_copied(
    seed: int, loss_name: str, *, box: bool, radius: float, cost: float, norm: Any, n: int = 15, p: int = 3
) -> tuple[SiteProblem, SiteProblem, np.ndarray]:
    """A site whose rows have weights, the site of their copies, and weights of a model."""
    rng, loss = np.random.default_rng(seed), get_loss(loss_name)
    x, times = rng.normal(size=(n, p)), rng.integers(1, 5, size=n)
    y = np.where(rng.normal(size=n) > 0, 1.0, -1.0) if loss.task == "classification" else rng.normal(size=n)
    support = None
    if box and loss.lines is not None:
        ends = (float(y.min()) - 0.1, float(y.max()) + 0.1) if seed % 2 else (-math.inf, math.inf)
        support = BoxSupport(x.min(axis=0) - 0.1, x.max(axis=0) + 0.1, *ends)
    spec = RobustSpec(radius, cost, norm, support, loss=loss)
    copied = SiteProblem(np.repeat(x, times, axis=0), np.repeat(y, times), spec)
    return SiteProblem(x, y, spec, times / times.mean()), copied, rng.normal(size=p + 1) * 10 ** rng.uniform(-1, 1)


@settings(max_examples=300)
@given(
    seed=st.integers(0, 10**6),
    loss=st.sampled_from(LOSSES),
    box=st.booleans(),
    radius=st.sampled_from([0.0, 1e-3, 0.1, 1.0, 5.0]),
    cost=st.sampled_from([0.05, 1.0, math.inf]),
    norm=st.sampled_from(NORMS),
)
def test_a_weight_of_k_is_as_k_copies(seed: int, loss: str, box: bool, radius: float, cost: float, norm: str) -> None:
    weighted, copied, point = weighted_and_copied(seed, loss, box=box, radius=radius, cost=cost, norm=norm)
    one, other = site_cut(point, weighted), site_cut(point, copied)
    assert one.risk == pytest.approx(other.risk, rel=1e-11, abs=1e-11)
    elsewhere = point + np.random.default_rng(seed).normal(size=point.shape)
    here, there = (
        float(np.linalg.norm(u[:-1], {"l1": np.inf, "l2": 2, "linf": 1}[norm])) for u in (point, elsewhere)
    )
    bound = one.height + float(one.slope @ (elsewhere - point)) + one.norm_weight * (there - here)
    swing = np.zeros(3) if one.swing is None else one.swing
    bound += float(swing @ (np.abs(elsewhere) - np.abs(point))[:-1])
    assert bound <= site_cut(elsewhere, copied).risk * (1 + 1e-9) + 1e-9
    if not box and loss != "epsilon_insensitive":
        priced = [priced_risk(point, 0.7, problem)[0] for problem in (weighted, copied)]
        assert priced[0] == pytest.approx(priced[1], rel=1e-11)


@pytest.mark.parametrize("norm", NORMS)
def test_a_weight_is_as_copies_where_a_site_is_passed_over_in_chunks(norm: str) -> None:
    weighted, copied, point = weighted_and_copied(3, "hinge", box=True, radius=0.1, cost=0.5, norm=norm, n=3000)
    assert copied.labels.shape[0] > 4096 > weighted.labels.shape[0]
    one, other = site_cut(point, weighted), site_cut(point, copied)
    assert one.risk == pytest.approx(other.risk, rel=1e-12)
    np.testing.assert_allclose(one.slope, other.slope, atol=1e-11)
    features, labels = (np.concatenate([part, part]) for part in (weighted.features, weighted.labels))
    counts = np.concatenate([0.5 * weighted.counts, 1.5 * weighted.counts])
    halves = SiteProblem(features, labels, weighted.spec, counts)
    assert site_cut(point, halves).risk == pytest.approx(other.risk, rel=1e-12)


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive", "pinball"])
def test_a_weight_is_as_copies_on_a_polytope(loss: str) -> None:
    rng, chosen = np.random.default_rng(1), get_loss(loss)
    x, times = rng.uniform(-1, 1, size=(8, 2)), rng.integers(1, 4, size=8)
    matrix, limits = np.vstack([np.eye(2), -np.eye(2), np.ones((1, 2))]), np.full(5, 1.5)
    if chosen.task == "regression":
        y = rng.uniform(-1, 1, size=8)
        walls = np.vstack([matrix, np.zeros((2, 2))])
        support = PolytopeSupport(walls, np.append(limits, [1.5, 1.5]), np.array([0.0] * 5 + [1.0, -1.0]))
    else:
        y, support = np.where(x[:, 0] > 0, 1.0, -1.0), PolytopeSupport(matrix, limits)
    spec = RobustSpec(0.3, 2.0, "l2", support, loss=chosen)
    point = np.array([2.0, -1.0, 0.1])
    one = site_cut(point, SiteProblem(x, y, spec, times / times.mean()))
    other = site_cut(point, SiteProblem(np.repeat(x, times, axis=0), np.repeat(y, times), spec))
    assert one.risk == pytest.approx(other.risk, rel=1e-8)
    assert one.height <= other.risk + 1e-9


def test_what_counts_rows_alike_refuses_weights() -> None:
    weighted, _, point = weighted_and_copied(0, "hinge", box=False, radius=0.1, cost=1.0, norm="l2")
    with pytest.raises(ProblemError, match="counts every row once"):
        robust_prox(weighted, point, 1.0)
    for method in (name for name, each in METHODS.items() if "gradient steps" in each.site_solver):
        smooth = SiteProblem(
            weighted.features, weighted.labels, RobustSpec(0.0, 1.0, loss=get_loss("logistic")), weighted.row_weights
        )
        with pytest.raises(ProblemError, match="takes no row weights"):
            train({"a": smooth}, method=method, max_rounds=1)
    for wrong in (np.ones(3), np.zeros(15), np.full(15, 2.0)):
        with pytest.raises(ProblemError, match="row weights must be"):
            train({"a": SiteProblem(weighted.features, weighted.labels, weighted.spec, wrong)}, max_rounds=1)
