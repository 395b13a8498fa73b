"""What the project claims of a drawn problem, held to the oracle; every contradiction is a :class:`Fault`."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tests.oracles.wasserstein.attacks import random_attack
from tests.oracles.wasserstein.draw import Drawn, draw
from tests.oracles.wasserstein.losses import Array
from tests.oracles.wasserstein.problem import Box, OracleSite, norm_of, steepest_unit
from tests.oracles.wasserstein.project import Refused, claimed_atoms, claimed_fit, claimed_radius, claimed_risk
from tests.oracles.wasserstein.risk import Oracle, OracleRisk
from tests.oracles.wasserstein.whole import WholeOracle

ROUNDING = 1e-9
"""Of the size of the terms: what float64 may cost the project and the oracle together."""
UNDERFLOW = 1e-100
"""Risks and bounds below it are 0: squares of such numbers underflow."""
LOOSE = 1e-6
"""Of the size of the terms: by how much a risk on a polytope, which a solver finds, may be above the true one."""
OPEN_GAP, NOTHING = 1e-3, 1e-6
"""Relative gap that counts as open, and the share of the blind model's risk below which a difference is none."""
ATTACKS, DESCENT, RADII = 6, 25, 10
"""Random attacks at each plane; steps of each descent; rows whose robustness radius is attacked."""


LOOSE_KINDS = frozenset({"loose risk", "fit: open gap"})
"""A claim that is true and says less than it should: a bound that is far off, and says so in its slack or its gap."""


@dataclass(frozen=True)
class Fault:
    """A claim that does not hold, or is loose, or a call that raised or warned."""

    seed: int
    kind: str
    where: str
    text: str

    @property
    def loose(self) -> bool:
        """Whether the claim is true all the same."""
        return self.kind in LOOSE_KINDS


def faults_of(seed: int) -> list[Fault]:
    """All faults of the problem of a seed."""
    drawn = draw(seed)
    found = dict[str, str]()
    for kind, text in _all(drawn):
        found.setdefault(kind, text)
    return [Fault(seed, kind, _place(drawn), text) for kind, text in found.items()]


def _place(drawn: Drawn) -> str:
    return f"{drawn.loss.name} x {drawn.support}"


def _all(drawn: Drawn) -> Iterator[tuple[str, str]]:
    random = np.random.default_rng([drawn.seed, 7])
    for site in drawn.sites:
        yield from _guarded(drawn, "risk", partial(_risks, random, site, drawn))
    if drawn.loss.name == "hinge" and drawn.support != "polytope":
        for site in drawn.sites[:1]:
            yield from _guarded(drawn, "atoms", partial(_atoms, site, drawn))
    yield from _guarded(drawn, "radius", lambda: _radii(random, drawn))
    if drawn.route:
        yield from _guarded(drawn, "fit", lambda: _fit(drawn))


def _guarded(
    drawn: Drawn, what: str, check: Callable[[], Iterator[tuple[str, str]]]
) -> Iterator[tuple[str, str]]:
    """The faults of a check; whatever it raises is one, and so is a warning that is not about convergence."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ConvergenceWarning)
            yield from list(check())
    except Exception as error:  # a crash of any kind is what is looked for
        if isinstance(error, Refused) and drawn.flat:
            return
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        yield f"crash in {what}", f"{type(error).__name__}: {str(error)[:200]} ({place})"


def _risks(random: np.random.Generator, site: OracleSite, drawn: Drawn) -> Iterator[tuple[str, str]]:
    oracle = Oracle(site)
    truths = [oracle.risk(plane, intercept) for plane, intercept in drawn.planes]
    for (plane, intercept), truth in zip(drawn.planes, truths, strict=True):
        claim = claimed_risk(site, plane, intercept)
        room = ROUNDING * truth.size + UNDERFLOW
        yield from _value(claim.value, claim.slack, truth, drawn.support == "polytope")
        for _ in range(ATTACKS):
            if (attack := random_attack(random, site, plane, intercept)) > claim.value + room:
                yield "attack beats the risk", f"claimed {claim.value!r}, an attack makes {attack!r}"
        if site.radius > 0 and drawn.support != "polytope":
            dual = oracle.dual(plane, intercept, claim.price * (1.0 + 1e-12))
            if not dual <= claim.value + 10 * room:
                yield "price", f"at the claimed price {claim.price!r} duality says {dual!r}, claimed {claim.value!r}"
        for cut in claim.cuts:
            for (other, c), there in zip(drawn.planes, truths, strict=True):
                bound, size = cut(other, c)
                if bound > there.upper + ROUNDING * (there.size + size) + UNDERFLOW:
                    yield "cut too high", f"cut {bound!r}, risk {there.upper!r}, relative to {there.size + size:.3g}"


def _value(value: float, slack: float, truth: OracleRisk, solved: bool) -> Iterator[tuple[str, str]]:
    room = ROUNDING * truth.size + UNDERFLOW
    said = f"claimed {value!r} (slack {slack:.3g}), truth in [{truth.lower!r}, {truth.upper!r}], size {truth.size:.3g}"
    if value < truth.lower - room:
        yield "risk too low", said
    if value - slack > truth.upper + room:
        yield "risk too high", said
    if solved and value > truth.upper + LOOSE * truth.size + UNDERFLOW:
        yield "loose risk", said


def _atoms(site: OracleSite, drawn: Drawn) -> Iterator[tuple[str, str]]:
    for plane, intercept in drawn.planes:
        truth, atoms = Oracle(site).risk(plane, intercept), claimed_atoms(site, plane, intercept)
        moves = atoms.points - site.features[atoms.source]
        flipped = atoms.labels != site.labels[atoms.source]
        # Where atoms lie far out, a move is the difference of two large numbers.
        rounding = 1e-15 * norm_of(np.abs(atoms.points) + np.abs(site.features[atoms.source]), site.norm)
        cost = float(atoms.masses @ np.maximum(norm_of(moves, site.norm) - 4 * rounding, 0.0))
        cost += site.flip_cost * float(atoms.masses[flipped].sum()) if flipped.any() else 0.0
        mass = np.bincount(atoms.source, atoms.masses, minlength=site.labels.shape[0])
        values = site.loss.value(atoms.labels * (atoms.points @ plane + intercept))
        terms = np.abs(atoms.points) @ np.abs(plane) + abs(intercept)
        risk, room = float(atoms.masses @ values), ROUNDING * (truth.size + float(atoms.masses @ terms))
        if np.abs(mass - 1.0 / mass.shape[0]).max() > 1e-12 or (atoms.masses < 0).any():
            yield "atoms: mass", f"masses of the rows {mass.tolist()}"
        if cost > site.radius * (1.0 + 1e-9):
            yield "atoms: budget", f"cost {cost!r}, radius {site.radius!r}"
        if isinstance(site.support, Box):
            side = 1e-12 * (np.abs(site.support.low) + np.abs(site.support.high))
            if (atoms.points < site.support.low - side).any() or (atoms.points > site.support.high + side).any():
                yield "atoms: support", "an atom lies outside the box"
        if abs(risk - atoms.risk) > room or not truth.lower - 2e-9 - room <= risk <= truth.upper + room:
            yield "atoms: risk", f"said {atoms.risk!r}, they make {risk!r}, truth [{truth.lower!r}, {truth.upper!r}]"


def _radii(random: np.random.Generator, drawn: Drawn) -> Iterator[tuple[str, str]]:
    """No attack within the radius changes the answer, and some attack just beyond does."""
    if drawn.loss.regression:
        return
    site, heads = drawn.sites[0], int(random.integers(1, 4))
    planes = np.array([np.append(plane, intercept) for plane, intercept in drawn.planes[:heads]])
    rows = site.features[:RADII]
    for row, radius in zip(rows, claimed_radius(planes, rows, site.norm), strict=True):
        winner = _winner(planes, row)
        rivals = [planes[0, :-1]] if heads == 1 else [each[:-1] - planes[winner, :-1] for each in planes]
        aims = [sign * steepest_unit(rival, site.norm) for rival in rivals for sign in (1.0, -1.0)]
        aims += [aim / norm_of(aim, site.norm) for aim in random.normal(size=(ATTACKS, row.shape[0]))]
        room = 1e-9 * float((np.abs(planes[:, :-1]) @ np.abs(row) + np.abs(planes[:, -1])).max())
        inside = [_lead(planes, row + aim * min(radius, 1e300) * (1 - 1e-9), winner) for aim in aims if radius < 1e200]
        if inside and min(inside) < -room:
            yield "robustness radius", f"an attack within {radius!r} changes the answer by {min(inside):.3g}"
        beyond = [_lead(planes, row + aim * radius * (1 + 1e-6), winner) for aim in aims if radius < 1e200]
        if beyond and min(beyond) > room + 1e-6 * radius * float(np.abs(planes).max()):
            yield "robustness radius", f"nothing just beyond {radius!r} changes the answer"


def _winner(planes: Array, row: Array) -> int:
    scores = planes[:, :-1] @ row + planes[:, -1]
    return int(scores[0] > 0) if len(planes) == 1 else int(np.argmax(scores))


def _lead(planes: Array, row: Array, winner: int) -> float:
    """By how much the old answer still leads."""
    scores = planes[:, :-1] @ row + planes[:, -1]
    if len(planes) == 1:
        return float(scores[0] if winner else -scores[0])
    return float(scores[winner] - np.delete(scores, winner).max())


def _fit(drawn: Drawn) -> Iterator[tuple[str, str]]:
    fit, whole = claimed_fit(drawn), WholeOracle(drawn)
    truth = whole.risk(fit.plane, fit.intercept)
    said = f"{drawn.route}: claimed [{fit.lower!r}, {fit.upper!r}] after {fit.rounds} rounds"
    room = ROUNDING * truth.size + UNDERFLOW
    solved = LOOSE if drawn.support == "polytope" else ROUNDING
    if fit.upper < truth.lower - room or fit.upper > truth.upper + solved * truth.size + UNDERFLOW:
        yield "fit: upper bound", f"{said}; its weights have [{truth.lower!r}, {truth.upper!r}], size {truth.size:.3g}"
    if not 0 <= fit.lower <= fit.upper:
        yield "fit: bounds cross", said
    blind = (np.zeros_like(fit.plane), 0.0)
    starts = [(fit.plane, fit.intercept), blind, drawn.planes[0]]
    best = min(whole.tried(starts, DESCENT), key=lambda each: each[0].upper + ROUNDING * each[0].size)
    if fit.lower > best[0].upper + ROUNDING * best[0].size:
        yield "fit: lower bound", f"{said}; weights {best[1].tolist()} have {best[0].upper!r}"
    nothing = NOTHING * whole.risk(*blind).upper + UNDERFLOW
    if fit.closes and fit.upper - fit.lower > max(OPEN_GAP * fit.upper, nothing):
        yield "fit: open gap", f"{said}; a descent reached {best[0].upper!r}"
