r"""Coupling of planes that were learnt one against the rest: a softmax regression on the K scores that they give.

    min_{A, b}  sum_g a_g mean_{i in g} log sum_k exp(z_ik - z_iy) + mu/2 (||A - I||_F^2 + ||b||^2),    z_i = A s_i + b

with s_i (K,) the scores of row i ("matrix scaling": Guo, Pleiss, Sun and Weinberger 2017, section 4.2). A plane that is
learnt against the rest knows nothing of the other planes: how large its scores are beside theirs is left to its own
loss and its own ball. The coupling settles that with K (K + 1) numbers, whatever the number of features. ``A W + b``
are planes again, one a class.

Rows are met through ``models.worst_case.joint_risk`` without a ball: loss and gradient at a point, counted from the
first class, ``(A_k - A_1, b_k - b_1)`` for k > 1; the gradient in the first row is minus the sum of the others. Steps
are those of limited-memory BFGS (Nocedal and Wright 2006, algorithm 7.4), of which several lengths are asked at once.

The ridge makes a bound of every cut ``L(u) >= h + <v, u - w>``: with the start c = (I, 0) and ``g = v + mu (w - c)``,

    L(u) + mu/2 ||u - c||^2 >= h + mu/2 ||w - c||^2 - ||g||^2 / (2 mu)    for every u.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from models.basics import FloatArray
from models.tuning.budget import OneTraining
from models.worst_case.joint_risk import class_planes, joint_weights

RIDGE: Final = 1e-2
"""mu; it holds where the scores part the training rows, and a log loss alone would go on growing."""
EXCHANGES: Final = 12
"""Most exchanges of a coupling; the first asks at the start alone."""
POINTS: Final = 3
"""Points that each other exchange asks."""
_LENGTHS: Final = (1.0, 0.3, 2.5)
"""Of the steps, in parts of the quasi-Newton step."""
_SHORTER = 0.25  # steps after an exchange in which no point was better
_NEAR = 1e-2  # relative gap that is near enough
_CURVED = 1e-12  # cosine of step and change of gradient below which a pair says nothing


class Told(NamedTuple):
    """Answer at a point: loss and its cut, ``L(u) >= height + <slope, u - w>``; slope ((K - 1)(K + 1),)."""

    loss: float
    height: float
    slope: FloatArray


class Coupler:
    """The search for the coupling of K planes: ``points`` says what to ask, ``tell`` takes the answers.

    ``best`` (K, K + 1) is ``(A, b)``; ``first``, ``objective`` and ``at_least`` are what the problem has at the start,
    at the best point, and everywhere at least; ``exchanges`` those that were told.
    """

    def __init__(self, n_classes: int, most: int = EXCHANGES) -> None:
        self._start = np.hstack([np.eye(n_classes), np.zeros((n_classes, 1))])
        self._most, self._length = most, 1.0
        self.best, self.exchanges = self._start, 0
        self.first, self.objective, self.at_least = math.inf, math.inf, 0.0
        self._gradient = np.zeros_like(self._start)
        self._pairs: list[tuple[FloatArray, FloatArray]] = []
        self._asked: tuple[FloatArray, ...] = (self._start,)

    def points(self) -> tuple[FloatArray, ...]:
        """Points (1, (K - 1)(K + 1)) of the next exchange; none: it is over."""
        near = self.objective - self.at_least <= _NEAR * self.objective
        if self.exchanges and near or self.exchanges >= self._most:
            return ()
        if self.exchanges:
            step = self._length * self._direction()
            self._asked = tuple(self.best + length * step for length in _LENGTHS)
        return tuple(joint_weights(each, True)[np.newaxis] for each in self._asked)

    def tell(self, answers: Sequence[Told]) -> None:
        """Take in what was answered at the points, in their order."""
        found = [self._with_ridge(point, told) for point, told in zip(self._asked, answers, strict=True)]
        self.at_least = max(self.at_least, *(bound for _, _, bound in found))
        self.exchanges += 1
        place = min(range(len(found)), key=lambda k: found[k][0])
        point, (value, gradient, _) = self._asked[place], found[place]
        moved, turned = point - self.best, gradient - self._gradient
        if (moved * turned).sum() > _CURVED * np.linalg.norm(moved) * np.linalg.norm(turned):
            self._pairs.append((moved, turned))
        if value < self.objective:
            self.best, self.objective, self._gradient, self._length = point, value, gradient, 1.0
        else:
            self._length *= _SHORTER
        if self.exchanges == 1:
            self.first = value

    def _with_ridge(self, point: FloatArray, told: Told) -> tuple[float, FloatArray, float]:
        """Objective, gradient (K, K + 1), and what the objective is at least everywhere."""
        k = len(point)
        others = class_planes(told.slope, k - 1, k, True)
        away = point - self._start
        gradient = np.vstack([-others.sum(axis=0), others]) + RIDGE * away
        ridge = RIDGE / 2.0 * float((away**2).sum())
        return told.loss + ridge, gradient, told.height + ridge - float((gradient**2).sum()) / (2.0 * RIDGE)

    def _direction(self) -> FloatArray:
        """The quasi-Newton step (K, K + 1); one of length 1 down the gradient where nothing is known of curvature."""
        if not self._pairs:
            return -self._gradient / max(float(np.linalg.norm(self._gradient)), 1e-12)
        step, shares = self._gradient.copy(), []
        for moved, turned in reversed(self._pairs):
            shares.append(float((moved * step).sum() / (moved * turned).sum()))
            step -= shares[-1] * turned
        moved, turned = self._pairs[-1]
        step *= (moved * turned).sum() / (turned**2).sum()
        for (moved, turned), share in zip(self._pairs, reversed(shares), strict=True):
            step += (share - (turned * step).sum() / (moved * turned).sum()) * moved
        return -step


def most_exchanges(rounds: int) -> int:
    """Exchanges that a coupling may have where it and the tuning before it may have so many rounds: a third of them."""
    return min(EXCHANGES, rounds // 3)


def coupling_cost(n_classes: int, n_features: int, rounds: int) -> OneTraining:
    """What a coupling costs a site at most, of planes of so many features, out of ``rounds``."""
    exchanges, size = most_exchanges(rounds), (n_classes - 1) * (n_classes + 1)
    return OneTraining(exchanges, float(exchanges * (n_classes * (n_features + 1) + POINTS * (2 * size + 3))))


def coupled_planes(planes: FloatArray, coupling: FloatArray) -> FloatArray:
    """Planes (K, P + 1), the intercept last, that give the coupled scores: ``A W`` with b on the intercepts."""
    found = coupling[:, :-1] @ planes
    found[:, -1] += coupling[:, -1]
    return found
