r"""Worst-case risk from the definition: an attack that is in the ball from below, weak duality from above.

    sup { E_Q L : W(Q, rows) <= radius }  <=  radius lam + mean_i sup_{v, y'} [ L - lam cost(v, y') ]    for lam >= 0.

The best answers of the rows at a price lam are an attack; what they cost says on which side of the best price lam lies.
Two attacks, one dearer than the radius and one cheaper, mixed so that they cost the radius, are in the ball: their
loss is the bound from below, and the price at which both are worth the same is the next one to try.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tests.oracles.wasserstein.box_moves import BoxMoves
from tests.oracles.wasserstein.losses import Array
from tests.oracles.wasserstein.polytope_moves import PolytopeMoves
from tests.oracles.wasserstein.problem import Box, OracleSite, Polytope, gain_of_unit, steepest_unit

STEPS = 100
"""Prices tried at most; some ten are enough where nothing is degenerate."""
FORBIDDEN = 1e100
"""Cost of a flip beyond which there is none."""
MASSES = (1.0, 1e-3, 1e-6, 1e-9, 1e-12)
"""Shares of a row that are tried for the far atom of an unbounded support."""


@dataclass(frozen=True)
class OracleRisk:
    """``lower <= risk <= upper``; a price and a subgradient (P + 1,); ``size``: what rounding is relative to."""

    lower: float
    upper: float
    price: float
    gradient: Array
    size: float


@dataclass(frozen=True)
class _Answer:
    """What the rows do at a price: mean loss by the loss itself, mean worth by its lines, mean cost, gradient."""

    loss: float
    worth: float
    cost: float
    gradient: Array
    arguments: Array
    values: Array


@dataclass(frozen=True)
class _Far:
    """A move without end: what a unit of cost adds to the loss, to the loss's argument and to the gradient."""

    rate: float
    change: float
    gradient: Array


class Oracle:
    """The worst-case risk of one site at any plane."""

    def __init__(self, site: OracleSite) -> None:
        # What costs this much happens with a mass of nothing: it is as good as forbidden.
        self.site = site = replace(site, flip_cost=np.inf if site.flip_cost > FORBIDDEN else site.flip_cost)
        self._moves: BoxMoves | PolytopeMoves | None = None
        if isinstance(site.support, Box):
            self._moves = BoxMoves(site, site.support)
        elif site.support is not None:
            self._moves = PolytopeMoves(site, site.support)

    def risk(self, plane: Array, intercept: float = 0.0) -> OracleRisk:
        """Bounds of the worst-case risk at a plane (P,)."""
        site, loss = self.site, self.site.loss
        z = self._arguments(plane, intercept, 1.0)
        terms = np.abs(site.features) @ np.abs(plane) + abs(intercept) + np.abs(site.labels)
        size = loss.steepest * float(terms.mean()) + float(loss.value(z).mean())
        if site.radius == 0:
            mean = float(loss.value(z).mean())
            return OracleRisk(mean, mean, np.inf, self._gradient(z, np.zeros_like(site.points), np.ones_like(z)), size)
        far = self._farthest(plane)
        least = far.rate
        cheap_price = max(self._price_of_rest(plane, z), least, np.finfo(float).tiny)
        dear, cheap = self._answer(plane, intercept, least), self._answer(plane, intercept, cheap_price)
        while cheap.cost > site.radius:
            cheap_price *= 2.0
            cheap = self._answer(plane, intercept, cheap_price)
        upper = min((self._dual(dear, least), least), (self._dual(cheap, cheap_price), cheap_price))
        if dear.cost <= site.radius:
            lower, gradient = self._with_far_atom(dear, far, site.radius - dear.cost)
            return OracleRisk(max(lower, cheap.loss), upper[0], upper[1], gradient, size + upper[0])
        low, dear_price = self._mixed(dear, cheap), least
        for step in range(STEPS):
            if upper[0] - low[0] <= 1e-14 * (size + abs(upper[0])):
                break
            price = (dear.worth - cheap.worth) / (dear.cost - cheap.cost)
            if step % 4 == 3:
                price = 0.5 * (dear_price + cheap_price)
            if not dear_price < price < cheap_price:
                break
            found = self._answer(plane, intercept, price)
            upper = min(upper, (self._dual(found, price), price))
            if found.cost > site.radius:
                dear, dear_price = found, price
            else:
                cheap, cheap_price = found, price
            low = max(low, self._mixed(dear, cheap), key=lambda pair: pair[0])
        return OracleRisk(low[0], upper[0], upper[1], low[1], size + upper[0])

    def dual(self, plane: Array, intercept: float, price: float) -> float:
        """Weak duality at one price: above the risk, infinite below the least price."""
        if price < self._farthest(plane).rate:
            return np.inf
        return self._dual(self._answer(plane, intercept, price), price)

    def _dual(self, answer: _Answer, price: float) -> float:
        return self.site.radius * price + answer.worth - price * answer.cost

    def _mixed(self, dear: _Answer, cheap: _Answer) -> tuple[float, Array]:
        share = (self.site.radius - cheap.cost) / (dear.cost - cheap.cost)
        return (
            share * dear.loss + (1.0 - share) * cheap.loss,
            share * dear.gradient + (1.0 - share) * cheap.gradient,
        )

    def _farthest(self, plane: Array) -> _Far:
        """What moves without end below the price ``rate``, at which it just pays."""
        site, (left, right) = self.site, self.site.loss.rates
        found = [_Far(0.0, 0.0, np.zeros(plane.shape[0] + 1))]
        if site.support is None:
            gain, unit = gain_of_unit(plane, site.norm), np.append(steepest_unit(plane, site.norm), 0.0)
            found += [_Far(rate * gain, sign * gain, rate * unit) for rate, sign in ((left, -1.0), (right, 1.0))]
        if site.loss.regression and not isinstance(site.support, Polytope):
            high, low = (site.support.target_high, site.support.target_low) if site.support else (np.inf, -np.inf)
            for rate, sign, end in ((left, -1.0, high), (right, 1.0, low)):
                if np.isinf(end):
                    found.append(_Far(rate / site.flip_cost, sign / site.flip_cost, np.zeros(plane.shape[0] + 1)))
        return max(found, key=lambda far: far.rate)

    def _price_of_rest(self, plane: Array, z: Array) -> float:
        """Price from which on nothing is worth moving or flipping."""
        site, loss = self.site, self.site.loss
        move = loss.steepest * gain_of_unit(plane, site.norm)
        if loss.regression:
            return max(move, loss.steepest / site.flip_cost) * (1.0 + 1e-9)
        return max(move, float((loss.value(-z) - loss.value(z)).max()) / site.flip_cost) * (1.0 + 1e-9)

    def _arguments(self, plane: Array, intercept: float, signs: Array | float, moves: Array | None = None) -> Array:
        site = self.site
        moves = np.zeros_like(site.points) if moves is None else moves
        return site.arguments(plane, intercept, moves, signs * site.labels)

    def _gradient(self, z: Array, moves: Array, signs: Array) -> Array:
        site, p = self.site, self.site.features.shape[1]
        slopes = site.loss.slope(z) * (1.0 if site.loss.regression else signs * site.labels) / z.shape[0]
        return np.append(slopes @ (site.features + moves[:, :p]), slopes.sum())

    def _answer(self, plane: Array, intercept: float, price: float) -> _Answer:
        """What every row does best at a price: move along some line of the loss, under its label or the other."""
        site, loss = self.site, self.site.loss
        n, still = site.labels.shape[0], np.zeros_like(site.points)
        flips = (1.0,) if loss.regression or np.isinf(site.flip_cost) else (1.0, -1.0)
        options: list[tuple[Array, Array, float]] = [(np.full(n, s), still, 0.0) for s in flips]
        worths = [loss.value(self._arguments(plane, intercept, s)) for s in flips]
        costs = [np.full(n, 0.0 if s > 0 else site.flip_cost) for s in flips]
        for slope, height in [line for line in loss.lines if line[0] != 0] if self._moves else []:
            for sign in flips:
                for label in (1.0, -1.0) if not loss.regression else (0.0,):
                    direction = slope * (np.append(plane, -1.0) if loss.regression else label * plane)
                    moves = self._moves.best(direction, price)
                    theirs = np.ones(n, bool) if loss.regression else sign * site.labels == label
                    worth = slope * self._arguments(plane, intercept, sign, moves) + height
                    options.append((np.full(n, sign), moves, 0.0))
                    worths.append(np.where(theirs, worth, -np.inf))
                    costs.append(site.move_cost(moves) + (0.0 if sign > 0 else site.flip_cost))
        gains = np.array(worths) - price * np.array(costs)
        best, rows = np.argmax(gains, axis=0), np.arange(n)
        signs = np.array([o[0] for o in options])[best, rows]
        moves = np.array([o[1] for o in options])[best, rows]
        z = self._arguments(plane, intercept, signs, moves)
        values = loss.value(z)
        return _Answer(
            float(values.mean()), float(np.array(worths)[best, rows].mean()), float(np.array(costs)[best, rows].mean()),
            self._gradient(z, moves, signs), z, values,
        )

    def _with_far_atom(self, answer: _Answer, far: _Far, left: float) -> tuple[float, Array]:
        """Loss when what is left of the radius moves a part of one row very far, and the gradient in the limit."""
        z, values = answer.arguments, answer.values
        best, count = answer.loss, z.shape[0]
        for mass in MASSES if far.rate > 0 else ():
            moved = self.site.loss.value(z + far.change * (left * count / mass))
            best = max(best, answer.loss + mass / count * float((moved - values).max()))
        return best, answer.gradient + left * far.gradient
