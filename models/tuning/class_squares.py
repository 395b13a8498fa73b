r"""Squares of several classes: one matrix of second moments that serves all heads of a lift with one fold held out.

The mean square of head k, ``q_k(w) = 1/2 mean (<w, z> - y_k)^2`` with z = (x, 1) and y_k = 1 for rows of class k, -1
for the others, has the gradient ``H w - c_k``: H is that of all heads. So K heads that are asked along K unlike
directions tell K products with H at once, and a dozen exchanges most of H, of few features all of it. At zero they tell
the c_k, and with them the shares and means of the classes,

    pi_k = (c_k + 1) / 2 by the intercept's entry,    pi_k mu_k = (c_k + m) / 2,    m = mean x = sum_k c_k / (2 - K),

and H less the means' own products is the spread within the classes. From these ``normal_classes`` has the planes of
every radius. Directions are those of a block Krylov space, from the means on, filled up by drawn ones where classes are
more than directions are left of it. Questions are asked as ``least_squares`` says, and rows counted by the vaults' own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from models.basics import Arrays, FloatArray
from models.tuning.candidates import Candidate
from models.tuning.least_squares import as_question, left_beside, spanned
from models.tuning.normal_classes import NormalClasses
from models.tuning.terms import Step, TuningTerms

_ABSENT = 1e-6  # least share of a class: one that no training row has is as good as never answered


@dataclass
class ClassSquares:
    """Gradients of all K heads, K > 2, and the planes (K, P + 1) that follow for a candidate."""

    terms: TuningTerms
    n_features: int
    heads: int
    _exchanges: int = 0
    _sums: FloatArray | None = None  # c_k (K, P + 1)
    _points: list[FloatArray] = field(default_factory=list)  # (P,) of norm 1
    _products: list[FloatArray] = field(default_factory=list)  # H_xx of them (P,)
    _last: list[FloatArray] = field(default_factory=list)  # those of the last exchange

    @property
    def dimension(self) -> int:
        """Length of a point."""
        return self.n_features + 1

    def asked(self, candidate: Candidate) -> int:
        """How many exchanges are known: of every candidate alike."""
        return self._exchanges

    def add(self, candidate: Candidate, points: FloatArray, answers: Mapping[str, Arrays]) -> None:
        """Take in what all sites answered at points (K, D): first at zero, then along directions."""
        told = [answers[site.site_id]["slope"] for site in self.terms.sites]
        slopes = np.average(told, axis=0, weights=self.terms.weights)
        self._exchanges += 1
        if self._sums is None:
            self._sums, self._last = -slopes, []
            return
        products = slopes + self._sums
        sizes = np.linalg.norm(points, axis=1)
        asked = np.flatnonzero(sizes > 0.0)
        self._last = [products[k, : self.n_features] / sizes[k] for k in asked]
        self._products += self._last
        self._points += [points[k, : self.n_features] / sizes[k] for k in asked]

    def step(self, candidate: Candidate) -> Step:
        """Directions to ask next (K, D), no weights of the candidate yet, and infinity while there are some to ask."""
        following, none = self._directions(), np.zeros((self.heads, self.dimension))
        return Step(none, none, 0.0) if following is None else Step(following, none, math.inf)

    def scored(self, candidate: Candidate) -> tuple[FloatArray, float]:
        """The candidate's planes (K, D), coupled; of bounds nothing is known."""
        return self._planes(candidate), math.inf

    def _directions(self) -> FloatArray | None:
        """The next of the block Krylov space, of absolute sum 1, zero where fewer are left; None: it is closed."""
        found = np.zeros((self.heads, self.dimension))
        if self._sums is None:
            return found
        basis, new = spanned(self._points, self.n_features), 0
        for whole in self._followers():
            left = left_beside(basis, whole)
            if left is not None:
                basis = np.column_stack([basis, left / np.linalg.norm(left)])
                found[new, : self.n_features] = as_question(left)
                new += 1
            if new == self.heads or basis.shape[1] == self.n_features:
                break
        return found if new else None

    def _followers(self) -> Iterator[FloatArray]:
        """Vectors (P,) that may lead on; drawn ones behind them, unless none of them did."""
        assert self._sums is not None
        shares, means, middle = self._classes()
        yield from (self._last if self._points else shares[:, None] * (means - middle))
        yield from np.random.default_rng(len(self._points)).normal(size=(self.heads, self.n_features))

    def _classes(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Shares (K,), means (K, P) and the mean of all rows (P,)."""
        assert self._sums is not None
        middle = self._sums[:, : self.n_features].sum(axis=0) / (2 - self.heads)
        shares = np.maximum((self._sums[:, -1] + 1.0) / 2.0, _ABSENT)
        shares /= shares.sum()
        means = (self._sums[:, : self.n_features] + middle) / 2.0 / shares[:, None]
        return shares, means, middle

    def _planes(self, candidate: Candidate) -> FloatArray:
        if self._sums is None or not self._points:
            return np.zeros((self.heads, self.dimension))
        shares, means, middle = self._classes()
        basis, corner = np.linalg.qr(np.stack(self._points, axis=1))
        moments = np.linalg.solve(corner.T, np.stack(self._products) @ basis)
        seen = means @ basis
        within = (moments + moments.T) / 2.0 - (seen.T * shares) @ seen
        price = self.terms.loss.lipschitz * self.terms.radius * candidate.radius
        planes = NormalClasses(shares, seen, within).planes(price)
        return np.column_stack([planes[:, :-1] @ basis.T, planes[:, -1]])
