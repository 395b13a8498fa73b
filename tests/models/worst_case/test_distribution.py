"""The atoms of the worst-case distribution: inside the ball and the box, and as bad as the risk says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject, SearchStrategy

from models.basics import FloatArray, ProblemError, TransportNorm
from models.geometry.norms import vector_norm
from models.problem import SiteProblem
from models.worst_case.distribution import worst_case_atoms
from models.worst_case.risk import worst_case_risk

Problems = SearchStrategy[tuple[SiteProblem, FloatArray]]
SHORTFALL = 1e-7


@settings(max_examples=300, derandomize=True)
@given(data=st.data(), boxed=st.booleans())
def test_atoms_attain_the_risk_within_the_ball(
    unbounded_problems: Problems, box_problems: Problems, data: DataObject, boxed: bool
) -> None:
    problem, weights = data.draw(box_problems if boxed else unbounded_problems)
    spec, (n, p) = problem.spec, problem.features.shape
    plane, intercept = weights[:p], float(weights[p]) if spec.fit_intercept else 0.0
    arguments: dict[str, Any] = {
        "radius": spec.radius, "label_flip_cost": spec.label_flip_cost, "transport_norm": spec.transport_norm,
        "support": None if spec.support is None else (spec.support.low, spec.support.high), "intercept": intercept,
    }
    risk = worst_case_risk(plane, problem.features, problem.labels, **arguments).value
    atoms = worst_case_atoms(plane, problem.features, problem.labels, shortfall=SHORTFALL, **arguments)

    assert atoms.masses.min() > 0
    np.testing.assert_allclose(np.bincount(atoms.source, weights=atoms.masses, minlength=n), 1 / n, rtol=1e-12)
    assert np.bincount(atoms.source).max() <= 3
    if spec.support is not None:
        assert (atoms.points >= spec.support.low).all() and (atoms.points <= spec.support.high).all()
    moved = vector_norm(atoms.points - problem.features[atoms.source], spec.transport_norm)
    flipped = atoms.labels != problem.labels[atoms.source]
    paid = float(atoms.masses @ moved) + (spec.label_flip_cost * atoms.masses[flipped].sum() if flipped.any() else 0)
    assert paid <= spec.radius * (1 + 1e-7) + 1e-9
    assert atoms.transport == pytest.approx(paid, rel=1e-7, abs=1e-9)
    loss = np.maximum(0, 1 - atoms.labels * (atoms.points @ plane + intercept))
    assert float(atoms.masses @ loss) == pytest.approx(risk, rel=1e-9, abs=2 * SHORTFALL)
    assert atoms.risk == pytest.approx(float(atoms.masses @ loss), rel=1e-12, abs=1e-12)


def test_a_supremum_that_no_distribution_attains_is_approached() -> None:
    arguments: dict[str, Any] = {"radius": 0.1, "label_flip_cost": 1e9, "transport_norm": "l2"}
    far = worst_case_atoms([1.0], [[5.0], [-5.0]], [1.0, -1.0], shortfall=1e-3, **arguments)
    farther = worst_case_atoms([1.0], [[5.0], [-5.0]], [1.0, -1.0], shortfall=1e-6, **arguments)
    exact = worst_case_risk([1.0], [[5.0], [-5.0]], [1.0, -1.0], **arguments).value
    assert exact == pytest.approx(0.1)
    assert exact - 1e-3 <= far.risk < farther.risk < exact
    assert len(far.masses) == 3


@pytest.mark.parametrize("nearest", [1.0, 1.0 + 1e-6, 1.5])
def test_every_atom_has_a_mass_where_all_of_a_row_is_moved_far(nearest: float) -> None:
    """A row whose margin is 1, or hardly more: none of it has to stay for a shortfall of 1e-3."""
    atoms = worst_case_atoms(
        [1.0], [[nearest], [-3.0]], [1.0, -1.0], shortfall=1e-3, radius=0.1, label_flip_cost=1e9, transport_norm="l2"
    )
    assert atoms.masses.min() > 0.0 and atoms.masses.sum() == pytest.approx(1.0)
    assert len(atoms.masses) == (3 if nearest == 1.5 else 2)
    assert 0.1 - 1e-3 - 1e-9 <= atoms.risk <= 0.1 + 1e-9


def test_refuses_a_shortfall_of_zero() -> None:
    with pytest.raises(ProblemError, match="shortfall must be above 0"):
        worst_case_atoms([1.0], [[5.0]], [1.0], radius=0.1, label_flip_cost=1, transport_norm="l2", shortfall=0.0)


@pytest.mark.parametrize("intercept", [float("nan"), float("inf")])
def test_an_intercept_that_is_no_number_is_refused_as_the_risk_refuses_it(intercept: float) -> None:
    """Of such a plane no atom would be worse than another."""
    arguments: dict[str, Any] = {
        "radius": 0.1, "label_flip_cost": 1.0, "transport_norm": "l2", "intercept": intercept
    }
    with pytest.raises(ProblemError, match="weights and intercept must be finite"):
        worst_case_risk([1.0], [[5.0]], [1.0], **arguments)
    with pytest.raises(ProblemError, match="weights and intercept must be finite"):
        worst_case_atoms([1.0], [[5.0]], [1.0], shortfall=1e-3, **arguments)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_where_flips_are_next_to_free_moves_cost_what_the_radius_leaves(norm: TransportNorm) -> None:
    """The radius pays for all flips, and at the price at which moving begins to pay rounding decides how far."""
    random = np.random.default_rng(3)
    for count in (1, 2, 3, 4, 5) * 8:
        features, labels = random.uniform(size=(count, 2)), random.choice([-1.0, 1.0], count)
        weights, radius = random.normal(size=2) * random.choice([1.0, 1e3]), 1e-8 * random.choice([1.0, 2.0])
        found = worst_case_atoms(
            weights, features, labels, radius=radius, label_flip_cost=1e-8, transport_norm=norm, support=(0.0, 1.0),
            intercept=float(random.choice([-1.0, 0.0, 3.0])),
        )
        assert found.transport <= radius * (1.0 + 1e-12)
