"""Training of all classes at once: what is refused before the first round, and features that stand still."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.basics import ProblemError
from models.problem import RobustSpec, SiteProblem
from models.simulation.crammer_singer import train_crammer_singer


def _sites() -> dict[str, SiteProblem]:
    random, sites = np.random.default_rng(0), {}
    for name in ("a", "b"):
        x = np.column_stack([random.normal(size=(20, 2)), np.full(20, 7.0)])
        labels = np.array([0.0, 1.0, 2.0])[random.integers(3, size=20)]
        x[:, 0] += 2.0 * labels
        sites[name] = SiteProblem(x, labels, RobustSpec(0.05, 1.0, "l2"))
    return sites


def test_sites_that_do_not_fit_are_refused() -> None:
    sites = _sites()
    with pytest.raises(ProblemError, match="class"):
        train_crammer_singer(sites, 2, max_rounds=2)
    for spec in (RobustSpec(0.05, 1.0, "l1"), RobustSpec(0.05, 1.0, "l2", fit_intercept=False)):
        with pytest.raises(ProblemError, match="transport_norm|fit_intercept"):
            train_crammer_singer({**sites, "b": replace(sites["b"], spec=spec)}, 3, max_rounds=2)
    with pytest.raises(ProblemError, match="number of features"):
        narrow = replace(sites["b"], features=sites["b"].features[:, :2])
        train_crammer_singer({**sites, "b": narrow}, 3, max_rounds=2)
    with pytest.raises(ProblemError, match="max_rounds must be at least 1, got 0"):
        train_crammer_singer(sites, 3, max_rounds=0)
    with pytest.raises(ProblemError, match="at least one site"):
        train_crammer_singer({}, 3)


def test_a_feature_that_stands_still_has_no_say() -> None:
    found = train_crammer_singer(_sites(), 3, gap=0.05, max_rounds=150)
    assert np.isfinite(found.planes).all() and found.certificate.gap <= 0.05
    np.testing.assert_allclose(found.planes[:, 2], 0.0, atol=1e-6)
