"""Which pieces of each row's loss tie and which face of the norm constraint holds: what an active-set step guesses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from models.geometry.norms import dual_norm, vector_norm
from models.prox.hinge.interior_point import InteriorPoint
from models.prox.hinge.statement import Point, Statement

# A row's support is the sum of the pieces in which its maximum is attained.
ZERO, KEEP, FLIP = 1, 2, 4
_TIES = np.array([False, False, False, True, False, True, True, True])
_ZERO_KEEP = np.array([False, False, False, True, False, False, False, True])
_ZERO_FLIP = np.array([False, False, False, False, False, True, False, True])
# Dual weights where nothing is left to decide; a tie of kept and flipped starts from kept.
_KEEP_SHARE = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0])
_FLIP_SHARE = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
_FACE = 1e-7  # relative distance from a face of the norm at which a point lies on it
_ROUNDING = 1e-12  # relative size below which a sign or an excess is rounding
_NEGATIVE = -1e-9  # dual weights below this contradict a pattern
_EXCESS = 1e-10  # so does a piece that is higher than the assumed ones by this

Codes = NDArray[np.uint8]
Index = NDArray[np.intp]
_NONE: Index = np.empty(0, dtype=np.intp)


@dataclass(frozen=True)
class Pattern:
    """A guess of the optimum's shape.

    support : (n,) codes, the sum of the pieces in which each row's maximum is attained.
    tied : whether the multiplier equals the dual norm of the weights.
    signs : (P,) of -1, 0, 1. Transport norm linf (dual l1): signs of the weights, 0 where a weight is held at 0.
    l1 (dual linf): signs of the weights held at +-multiplier, 0 where a weight is free. l2: ones. For all three,
    zeros throughout with ``tied`` hold the feature weights and the multiplier at 0.
    around, pull : weights (D,) and norm dual's size around which the norm l2 is linearised.
    """

    support: Codes
    tied: bool
    signs: FloatArray
    around: FloatArray
    pull: float


@dataclass(frozen=True)
class Ties:
    """The rows of a pattern whose maximum is attained in several pieces, and the dual weights of all the others.

    ``rows`` are all of them. ``kept``, ``flipped``, ``either``: those that tie zero with kept, zero with flipped, kept
    with flipped, in the order of their equations. A row that ties all three is in the first two.
    """

    rows: Index
    kept: Index
    flipped: Index
    either: Index
    keep: FloatArray
    flip: FloatArray

    def gather(self, keep: FloatArray, flip: FloatArray) -> FloatArray:
        """The unknowns of the ties' equations out of dual weights of all rows."""
        if not self.flip.size:
            return keep[self.kept]
        return np.concatenate((keep[self.kept], flip[self.flipped], flip[self.either]))

    def put(self, shares: FloatArray) -> None:
        """Set the dual weights of the ties from the unknowns of their equations."""
        first = self.kept.size
        self.keep[self.kept] = shares[:first]
        if self.flip.size:
            second = first + self.flipped.size
            self.flip[self.flipped] = shares[first:second]
            self.flip[self.either] = shares[second:]
            self.keep[self.either] = 1.0 - shares[second:]


@dataclass(frozen=True)
class Trial(Point):
    """The optimum if a pattern were right; ``ties`` are the rows where several pieces were assumed."""

    ties: Index


def tied_rows(support: Codes) -> Index:
    """Rows whose maximum is attained in more than one piece."""
    return _TIES[support].nonzero()[0]


def collect(support: Codes, can_flip: bool) -> Ties:
    """The ties of a pattern by kind."""
    keep = _KEEP_SHARE[support]
    tied = tied_rows(support)
    if not can_flip:
        return Ties(tied, tied, _NONE, _NONE, keep, np.zeros(0))
    codes = support[tied]
    return Ties(
        rows=tied,
        kept=tied[_ZERO_KEEP[codes]],
        flipped=tied[_ZERO_FLIP[codes]],
        either=tied[codes == KEEP + FLIP],
        keep=keep,
        flip=_FLIP_SHARE[support],
    )


def pattern_at(problem: Statement, weights: FloatArray, multiplier: float, width: float) -> Pattern:
    """Pattern of the kinks within ``width`` of a point; the face of the norm is the one the point lies on."""
    features = weights[: problem.n_features]
    kept = 1.0 - problem.rows @ weights
    floor = np.maximum(kept, 0.0)
    if problem.can_flip:
        flipped = (2.0 - problem.flip * multiplier) - kept
        np.maximum(floor, flipped, out=floor)
        floor -= width
        support = (flipped >= floor) * np.uint8(FLIP)
    else:
        floor -= width
        support = np.zeros(kept.size, dtype=np.uint8)
    support += (kept >= floor) * np.uint8(KEEP)
    support += (floor <= 0.0).view(np.uint8)
    size = dual_norm(features, problem.norm)
    if problem.norm == "linf":
        signs = np.sign(features) * (np.abs(features) > _FACE * size)
    elif problem.norm == "l1":
        signs = np.sign(features) * (np.abs(features) > size * (1.0 - _FACE))
    else:
        signs = np.ones_like(features)
    return Pattern(support, multiplier <= size * (1.0 + _FACE), signs, weights, problem.price)


def pattern_of(run: InteriorPoint) -> Pattern:
    """Pattern that an interior point run shows: a piece is active where its dual is larger than its slack."""
    problem = run.problem
    features = run.weights[: problem.n_features]
    active = (run.rows.dual > run.rows.slack).view(np.uint8)
    support = active[0] + KEEP * active[1]
    if problem.can_flip:
        support += FLIP * active[2]
    if run.cone is None:
        return Pattern(support, False, np.ones_like(features), run.weights.copy(), 0.0)
    pull = run.cone.pull()
    price = max(float(pull[0]), 0.0)
    room = 1.0 - dual_norm(features, problem.norm) / run.bound
    signs = np.sign(features)
    if problem.norm != "linf" and price > 0.0:
        # the norm dual is inside its bound by more than the multiplier costs a row: the weights go to 0; but where its
        # share of the price is smaller than that cost, it is the whole dual that goes to 0, and the multiplier is loose
        inside = 1.0 - vector_norm(pull[1:], problem.norm) / price
        cost = run.bound / problem.total
        if inside > cost * price and price > cost * problem.price**2:
            return Pattern(support, True, np.zeros_like(features), run.weights.copy(), price)
    if problem.norm == "l1":
        # share of the price on a weight against its distance from the bound
        signs *= np.abs(pull[1:]) > price * (1.0 - np.abs(features) / run.bound)
    elif problem.norm == "linf":
        signs *= price * np.abs(features) > (price - np.abs(pull[1:])) * run.bound
    else:
        signs = np.ones_like(features)
    return Pattern(support, price > room * problem.price, signs, run.weights.copy(), price)


def revise(problem: Statement, pattern: Pattern, trial: Trial) -> tuple[Pattern, bool]:
    """Pattern corrected by what its trial contradicts, and whether the trial contradicts nothing.

    Pieces whose dual weight is negative leave the support, pieces above the ones assumed enter it; likewise for the
    norm. This is the primal-dual active set (semismooth Newton) rule.
    """
    support = pattern.support.copy()
    lowest = _drop(support, trial) if trial.ties.size else 0.0
    # The assumed pieces of a tie are equal, so any combination of them is the assumed loss.
    kept = 1.0 - problem.rows @ trial.weights
    assumed = trial.keep * kept
    loss = np.maximum(kept, 0.0)
    if problem.can_flip:
        flipped = (2.0 - problem.flip * trial.multiplier) - kept
        assumed += trial.flip * flipped
        loss = np.maximum(loss, flipped)
    enters = (loss > assumed + _EXCESS).nonzero()[0]
    if enters.size:
        highest = np.where(kept[enters] > 0.0, KEEP, ZERO)
        if problem.can_flip:
            highest[flipped[enters] > np.maximum(kept[enters], 0.0)] = FLIP
        support[enters] |= highest.astype(np.uint8)
    agrees = not enters.size and lowest > _NEGATIVE
    tied, signs, price = _revise_norm(problem, pattern, trial)
    agrees = agrees and tied == pattern.tied and (not tied or bool((signs == pattern.signs).all()))
    return Pattern(support, tied, signs, trial.weights, price), agrees


def _drop(support: Codes, trial: Trial) -> float:
    """Take the pieces with negative dual weight out of the support of the ties; return the lowest of the weights."""
    ties = trial.ties
    keep = trial.keep[ties]
    stay = (keep > _ROUNDING) * np.uint8(KEEP)
    zero = 1.0 - keep
    least = keep
    if trial.flip.size:
        flip = trial.flip[ties]
        stay += (flip > _ROUNDING) * np.uint8(FLIP)
        zero -= flip
        least = np.minimum(keep, flip)
    stay += (zero > _ROUNDING).view(np.uint8)
    support[ties] &= stay
    return float(np.minimum(least, zero).min())


def _revise_norm(problem: Statement, pattern: Pattern, trial: Trial) -> tuple[bool, FloatArray, float]:
    """``tied``, ``signs`` and the norm dual's size of the corrected pattern."""
    if not problem.is_robust:
        return pattern.tied, pattern.signs, 0.0
    features, old = trial.weights[: problem.n_features], pattern.signs
    price = problem.price - (problem.flip * float(trial.flip.sum()) if problem.can_flip else 0.0)
    if pattern.tied and problem.norm != "linf" and not old.any():
        held = vector_norm(trial.norm_dual, problem.norm) <= price * (1.0 + 1e-9)
        return True, old if held else -np.sign(trial.norm_dual), price
    if pattern.tied and problem.norm == "l2":
        crossed = float(features @ pattern.around[: problem.n_features]) <= 0.0
        return price >= -_ROUNDING * problem.price, np.zeros_like(old) if crossed else old, price
    if not pattern.tied:
        size = dual_norm(features, problem.norm)
        signs = np.sign(features)
        if problem.norm == "l1":
            signs *= np.abs(features) >= size * (1.0 - _ROUNDING)
        elif problem.norm == "l2":
            signs = old
        return trial.multiplier < size * (1.0 - _ROUNDING), signs, price
    norm_dual = trial.norm_dual
    if problem.norm == "linf":
        released = np.where(np.abs(norm_dual) > price * (1.0 + 1e-9), -np.sign(norm_dual), 0.0)
        signs = np.where(old != 0.0, np.where(features * old < 0.0, 0.0, old), released)
    elif trial.multiplier <= 0.0:
        signs = np.zeros_like(old)
    else:
        outgrown = np.where(np.abs(features) > trial.multiplier * (1.0 + _ROUNDING), np.sign(features), 0.0)
        signs = np.where(old != 0.0, np.where(norm_dual * old > _ROUNDING * price, 0.0, old), outgrown)
    return price >= -_ROUNDING * problem.price, signs, price
