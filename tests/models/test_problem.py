"""What a problem is refused for, and where its tolerances end."""

from __future__ import annotations

import math

import numpy as np
import pytest

from models.basics import ProblemError
from models.geometry.supports import BoxSupport
from models.problem import RobustSpec, ServerProblem, SiteProblem, SiteTerms
from models.validation import check_rows, check_site_problem


def stated(*weights: float) -> ServerProblem:
    return ServerProblem(2, tuple(SiteTerms(f"s{k}", each, 0.1, 1.0) for k, each in enumerate(weights)), "l2", True)


def test_site_weights_are_a_mixture_but_for_rounding() -> None:
    assert stated(0.5, 0.5 + 9e-10).weights.sum() > 1.0
    for wrong in ((0.5, 0.5 + 2e-9), (0.5, 0.5 - 2e-9), (1.5, -0.5), (math.nan, 0.5)):
        with pytest.raises(ProblemError, match="site weights must be at or above 0 and sum to 1"):
            stated(*wrong)
    with pytest.raises(ProblemError, match="at least one site"):
        stated()


def test_a_feature_may_stick_out_of_its_box_by_rounding_in_its_own_units() -> None:
    box = BoxSupport(np.array([0.0, 0.0]), np.array([1.0, 1e6]))
    check_rows(np.array([[1.0 + 9e-10, 1e6 + 9e-4], [-9e-10, -9e-4]]), np.ones(2), box)
    for outside in ([1.0 + 2e-9, 1.0], [1.0, 1e6 + 2e-3], [-2e-9, 1.0], [1.0, -2e-3]):
        with pytest.raises(ProblemError, match="1 of 1 rows lie outside the support box"):
            check_rows(np.array([outside]), np.ones(1), box)


def test_row_weights_have_the_mean_1_but_for_rounding() -> None:
    spec, features, labels = RobustSpec(0.1, 1.0), np.zeros((2, 1)), np.array([1.0, -1.0])
    check_site_problem(SiteProblem(features, labels, spec, np.array([0.5, 1.5 + 1e-9])))
    for wrong in ([0.5, 1.5 + 4e-9], [0.5, 1.4], [0.0, 2.0], [-0.5, 2.5]):
        with pytest.raises(ProblemError, match="row weights must be above 0 and have the mean 1"):
            check_site_problem(SiteProblem(features, labels, spec, np.array(wrong)))
