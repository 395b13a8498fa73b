r"""The worst-case distribution itself: atoms that attain the worst-case risk.

Row-level data: atoms lie beside the samples they come from and never leave the vault.

Each sample splits into at most three atoms (untouched, moved under its label, moved and flipped); only samples tied at
the optimal price split at all. With an unbounded support the supremum need not be attained: where every sample is
classified with room to spare, the radius is best spent on moving a vanishing mass very far. Then the atoms fall short
of the risk by at most ``shortfall``, and one sample has a far atom. Source: FDR eq. (6), with the sign of the move
mended (MATH section 2) and the hinge's zero piece, which the paper's linear program leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from models.basics import FloatArray, ProblemError, TransportNorm
from models.geometry.norms import steepest_move, vector_norm
from models.geometry.supports import BoxSupport
from models.worst_case.box_hinge import moves
from models.worst_case.hinge import hinge_rows, solve
from models.worst_case.risk import stated_problem
from models.worst_case.saddle_point import FLIPPED, UNTOUCHED, AdversaryAction, Rows, Saddle


@dataclass(frozen=True)
class WorstCaseAtoms:
    """A distribution within the ball: ``points`` (M, P), ``labels`` (M,), ``masses`` (M,) that sum to 1.

    ``source`` (M,) is the row that an atom comes from, ``risk`` the expected hinge loss, ``transport`` what the
    distribution costs (at most the radius).
    """

    points: FloatArray
    labels: FloatArray
    masses: FloatArray
    source: NDArray[np.intp]
    risk: float
    transport: float


def worst_case_atoms(
    weights: ArrayLike,
    features: ArrayLike,
    labels: ArrayLike,
    *,
    radius: float,
    label_flip_cost: float,
    transport_norm: TransportNorm,
    support: BoxSupport | tuple[ArrayLike, ArrayLike] | None = None,
    intercept: float = 0.0,
    shortfall: float = 1e-9,
) -> WorstCaseAtoms:
    """Atoms of a worst-case distribution; parameters as :func:`models.worst_case.risk.worst_case_risk`.

    ``shortfall`` (above 0) bounds what the atoms may lack of the risk where no distribution attains it.
    ``ProblemError`` where the problem as stated has no meaning.
    """
    if not shortfall > 0:
        raise ProblemError(f"shortfall must be above 0, got {shortfall}")
    plane, problem = stated_problem(
        weights, features, labels, radius=radius, label_flip_cost=label_flip_cost, transport_norm=transport_norm,
        support=support, intercept=intercept,
    )
    rows = hinge_rows(plane[:-1], intercept, problem)
    saddle = solve(rows)
    atoms = _merged([_atoms_of(rows, action) for action in saddle.actions], rows)
    if rows.support is None and saddle.leftover > 0 and rows.weights.any():
        atoms = _spend(rows, atoms, saddle, shortfall)
    return _evaluated(rows, atoms, intercept)


@dataclass(frozen=True)
class _Atoms:
    source: NDArray[np.intp]
    act: NDArray[np.int8]
    moved: FloatArray
    masses: FloatArray


def _atoms_of(rows: Rows, action: AdversaryAction) -> _Atoms:
    everything = slice(0, rows.count)
    sizes = np.zeros_like(rows.features) if rows.support is None else moves(rows, rows.support, action, everything)
    towards = -(rows.labels * action.act)[:, None] * np.sign(rows.weights)
    return _Atoms(np.arange(rows.count), action.act, towards * sizes, np.full(rows.count, action.share / rows.count))


def _merged(parts: list[_Atoms], rows: Rows) -> _Atoms:
    """One atom for each row and act: losses are linear along a move and costs convex, so means lose nothing."""
    source = np.concatenate([part.source for part in parts])
    act = np.concatenate([part.act for part in parts])
    masses = np.concatenate([part.masses for part in parts])
    moved = np.concatenate([part.moved for part in parts])
    keys, place = np.unique(source * 3 + act + 1, return_inverse=True)
    total, mean = np.zeros(keys.size), np.zeros((keys.size, rows.features.shape[1]))
    np.add.at(total, place, masses)
    np.add.at(mean, place, masses[:, None] * moved)
    # A mass that its row's does not feel is none: times a flip cost of 1e160 it would still be a cost.
    there = total > float(np.finfo(np.float64).eps) / rows.count
    mean[there] /= total[there, None]
    return _Atoms(keys[there] // 3, (keys[there] % 3 - 1).astype(np.int8), mean[there], total[there])


def _spend(rows: Rows, atoms: _Atoms, saddle: Saddle, shortfall: float) -> _Atoms:
    """Spend what is left of the radius on moving one atom along the steepest direction."""
    steepest = steepest_move(rows.weights, rows.transport_norm)
    active = np.flatnonzero(atoms.act != UNTOUCHED)
    if active.size:
        heaviest = int(active[np.argmax(atoms.masses[active])])
        moved = atoms.moved.copy()
        side = rows.labels[atoms.source[heaviest]] * atoms.act[heaviest]
        moved[heaviest] -= side * steepest * (saddle.leftover / atoms.masses[heaviest])
        return _Atoms(atoms.source, atoms.act, moved, atoms.masses)
    nearest = int(np.argmin(rows.margins[atoms.source]))
    spare = float(rows.margins[atoms.source[nearest]]) - 1.0
    mass = min(float(atoms.masses[nearest]), shortfall / spare) if spare > 0 else float(atoms.masses[nearest])
    masses = atoms.masses.copy()
    masses[nearest] -= mass
    far = -rows.labels[atoms.source[nearest]] * steepest * (saddle.leftover / mass)
    grown = _Atoms(
        np.append(atoms.source, atoms.source[nearest]),
        np.append(atoms.act, np.int8(1)),
        np.vstack([atoms.moved, far]),
        np.append(masses, mass),
    )
    there = grown.masses > 0
    return _Atoms(grown.source[there], grown.act[there], grown.moved[there], grown.masses[there])


def _evaluated(rows: Rows, atoms: _Atoms, intercept: float) -> WorstCaseAtoms:
    flipped = atoms.act == FLIPPED
    paid = float(atoms.masses @ vector_norm(atoms.moved, rows.transport_norm))
    flips = rows.label_flip_cost * float(atoms.masses[flipped].sum()) if flipped.any() else 0.0
    if 0.0 < rows.radius - flips < paid:
        # At the price at which moving begins to pay, rounding decides how far: never beyond the radius.
        shorter = (rows.radius - flips) / paid
        atoms, paid = replace(atoms, moved=shorter * atoms.moved), rows.radius - flips
    points = rows.features[atoms.source] + atoms.moved
    if rows.support is not None:
        points = np.clip(points, rows.support.low, rows.support.high)
    labels = np.where(flipped, -1.0, 1.0) * rows.labels[atoms.source]
    losses = np.maximum(0.0, 1.0 - labels * (points @ rows.weights + intercept))
    return WorstCaseAtoms(points, labels, atoms.masses, atoms.source, float(atoms.masses @ losses), paid + flips)
