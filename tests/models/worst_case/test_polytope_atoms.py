"""Atoms as a solver may leave them, however wrong, are brought into the ball on the polytope: only then a cut holds."""

from __future__ import annotations

import numpy as np
import pytest

from models.geometry.norms import vector_norm
from models.losses.catalogue import get_loss
from models.problem import RobustSpec, SiteProblem
from tests.models.worst_case.test_polytope import unit_polytope

pytest.importorskip("cvxpy", reason="polytopes need the extra 'reference'")

from models.reference.pieces import pieces, walls  # noqa: E402
from models.reference.polytope_atoms import Atoms, PolytopeBall  # noqa: E402

ROUNDING = 1e-9


@pytest.mark.parametrize("size", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("cost", [0.3, np.inf])
@pytest.mark.parametrize("loss", ["hinge", "pinball"])
def test_whatever_is_found_ends_within_mass_radius_and_walls(loss: str, cost: float, size: float) -> None:
    random, judged = np.random.default_rng(6), get_loss(loss)
    regression = judged.task == "regression"
    x, counts = random.uniform(size=(6, 2)), np.array([1.0, 2.0, 0.5, 1.0, 1.0, 0.5])
    y = random.uniform(-2, 2, 6) if regression else random.choice([-1.0, 1.0], 6)
    spec = RobustSpec(0.05, cost, "l2", unit_polytope(2, targets=regression), loss=judged)
    site = SiteProblem(x, y, spec, counts)
    place, (parts, _) = walls(site), pieces(site)
    ball = PolytopeBall(site, place, parts)
    wild = [
        Atoms(random.normal(0.5, 1, 6), size * random.normal(size=(6, 2)), size * random.normal(size=6) * regression)
        for _ in parts
    ]
    atoms = ball.brought_inside(wild)
    assert all((part.mass >= 0).all() for part in atoms)
    assert (np.sum([part.mass for part in atoms], axis=0) <= counts * (1 + ROUNDING)).all()
    spent = sum(float(vector_norm(part.move, "l2").sum()) + piece.cost * float(part.mass.sum())
                for piece, part in zip(parts, atoms, strict=True))
    moved = sum(float(np.abs(part.target_move).sum()) for part in atoms)
    assert moved == 0.0 if np.isinf(cost) else spent + cost * moved <= 0.05 * 6 * (1 + ROUNDING)
    assert spent <= 0.05 * 6 * (1 + ROUNDING)
    for part in atoms:
        reached = part.move @ place.matrix.T + np.outer(part.target_move, place.column)
        assert (reached <= part.mass[:, None] * ball.clearance + ROUNDING).all()
