"""Solvers that are for the hinge alone say so where another loss comes in."""

from __future__ import annotations

import numpy as np
import pytest

from models.basics import ProblemError
from models.centralised.bundle import train_at_hand
from models.centralised.hinge import train_pooled
from models.geometry.supports import BoxSupport, PolytopeSupport
from models.losses.catalogue import LOSS_NAMES, get_loss
from models.problem import RobustSpec, SiteProblem
from models.prox.hinge import robust_prox
from models.site_ambiguity.ball import MixtureBall
from models.worst_case.risk import worst_case_risk


def _site(name: str, support: BoxSupport | PolytopeSupport | None = None) -> SiteProblem:
    random, loss = np.random.default_rng(2), get_loss(name)
    x = random.uniform(size=(20, 2))
    y = x @ np.array([0.4, -0.2]) + 0.3 if loss.task == "regression" else random.choice([-1.0, 1.0], 20)
    return SiteProblem(x, y, RobustSpec(0.05, 1.0, "l1", support, True, loss))


@pytest.mark.parametrize("name", [name for name in LOSS_NAMES if name != "hinge"])
def test_other_losses_are_refused(name: str) -> None:
    site = _site(name)
    with pytest.raises(ProblemError, match=f"client step is for the hinge loss, the loss is {name}"):
        robust_prox(site, np.zeros(3), 1.0)
    with pytest.raises(ProblemError, match=f"for the hinge loss, the loss is {name}; use a method of the catalogue"):
        train_pooled({"a": site})


def test_polytopes_are_refused_where_features_have_no_bounds() -> None:
    walls = PolytopeSupport(np.vstack([np.eye(2), -np.eye(2)]), np.ones(4))
    site = _site("hinge", walls)
    with pytest.raises(ProblemError, match="for features without bounds"):
        robust_prox(site, np.zeros(3), 1.0)
    with pytest.raises(ProblemError, match="for unbounded support"):
        train_pooled({"a": site})
    with pytest.raises(ProblemError, match="there is no loss 'cubic'"):
        worst_case_risk([1.0], [[1.0]], [1.0], radius=0.1, label_flip_cost=1, transport_norm="l2", loss="cubic")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["hinge", "pinball"])
def test_two_equal_sites_on_a_box_are_one(name: str) -> None:
    site, fixed = _site(name, BoxSupport(np.zeros(2), np.ones(2), 0.0, 1.0)), MixtureBall()
    found = train_at_hand({"a": site, "b": site}, mixture=fixed, gap=1e-4)
    assert found.certificate.gap <= 1e-4
    one = train_at_hand({"a": site}, mixture=fixed, gap=1e-4)
    assert one.certificate.upper == pytest.approx(found.certificate.upper, rel=2e-4)
