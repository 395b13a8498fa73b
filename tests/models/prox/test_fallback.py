"""Box support: the reference solver through the fallback, and what is said where it is missing."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from models.problem import BoxSupport, ProblemError, SiteProblem
from models.prox import robust_prox
from models.reference.prox import reference_value
from models.worst_case import site_risk


def _boxed(site):
    box = BoxSupport(np.zeros(5), np.ones(5))
    return SiteProblem(site.features, site.labels, replace(site.spec, support=box))


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("radius", [0.0, 0.01, 0.5])
@pytest.mark.parametrize("flip_cost", [0.3, np.inf])
def test_box_support_goes_to_the_reference(make_site, objective, assert_minorant, norm, radius, flip_cost):
    site = _boxed(make_site(15, norm=norm, radius=radius, flip_cost=flip_cost))
    centre = np.linspace(-2.0, 2.0, 6)
    found = robust_prox(site, centre, 0.5, ridge=0.1)
    assert found.solver == "reference: CVXPY and Clarabel"
    assert found.value == pytest.approx(objective(found.point, site, centre, 0.5, 0.1), rel=1e-12)
    assert found.value == pytest.approx(reference_value(site, centre, 0.5, 0.1), rel=1e-7)
    assert -1e-12 <= found.gap <= 1e-8 * found.value
    random = np.random.default_rng(0)
    points = [found.point, centre, *(random.normal(size=6) * scale for scale in (0.1, 1.0, 100.0) for _ in range(10))]
    assert_minorant(found, site, points)
    height = found.offset + float(found.slope @ found.point)
    assert site_risk(found.point, site).value - height <= 1e-7


def test_a_missing_extra_is_named(make_site, monkeypatch):
    for name in ("models.reference.prox", "models.reference.worst_case"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(ProblemError, match=r"pip install 'ballast-diagnosis\[reference\]'"):
        robust_prox(_boxed(make_site(5)), np.zeros(6), 1.0)


def test_the_fast_solvers_load_no_reference():
    code = (
        "import sys, numpy as np; from models.problem import *; from models.prox import robust_prox; "
        "robust_prox(SiteProblem(np.ones((3, 2)), np.ones(3), RobustSpec(0.1, 1.0)), np.zeros(3), 1.0); "
        "assert not {'cvxpy', 'clarabel', 'models.reference'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
