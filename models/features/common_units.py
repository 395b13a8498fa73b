r"""One unit for all features and one for the targets, so that how they are measured does not touch the training.

With features ``x = s x'``, targets ``y = t y'``, weights ``w = (t / s) w'`` and ``b = t b'``, a ball of radius
``s r'`` and cost ``||x - x'|| + kappa |y - y'|`` is one of radius ``r'`` and ``kappa' = kappa t / s`` (labels have
no unit: ``kappa' = kappa / s``), and the loss ``L(t z) = t^h L'(z)`` is of the same kind, h its degree; so all risks,
and all bounds on them, are ``t^h`` times those of the problem in these units. Taken are the median of the
features' largest absolute values over all sites, and the largest target (where all are 0, what the support allows):
what a contract's sensor ranges do where the
rows stay at their sites. Squares of what is left have to fit a float64, and so have products of several: numbers beyond
1e50 are refused, for a sum that overflows is no bound any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from models.basics import FloatArray, ProblemError
from models.geometry.supports import BoxSupport, PolytopeSupport, Support
from models.losses.base import Loss
from models.losses.regression import EpsilonInsensitive, Huber, Squared
from models.problem import Certificate, SiteProblem

MOST: Final = 1e50
"""Units are at most so large and at least one part of it so small, and so large are feature and radius in them."""


@dataclass(frozen=True)
class CommonUnits:
    """Units ``feature`` s, ``target`` t and ``risk`` t^h, each above 0; 1 changes nothing."""

    feature: float = 1.0
    target: float = 1.0
    risk: float = 1.0

    @staticmethod
    def of(sites: Mapping[str, SiteProblem]) -> CommonUnits:
        """Units in which a typical feature, the median of the largest values of all, and the largest target are 1.

        ``ProblemError`` for features or targets in units far from their size, or one feature far above the others.
        """
        problems = list(sites.values())
        loss = problems[0].spec.loss
        target = 1.0
        if loss.task == "regression":
            target = _largest([site.labels for site in problems]) or _target_of(problems[0].spec.support) or 1.0
        sizes = np.max([np.abs(site.features).max(axis=0, initial=0.0) for site in problems], axis=0)
        if not sizes.any():
            sizes = _features_of(problems[0].spec.support)
        feature = float(np.median(sizes[sizes > 0])) if (sizes > 0).any() else 1.0
        for name, size in (("features", feature), ("targets", target)):
            if not 1.0 / MOST <= size <= MOST:
                raise ProblemError(f"{name} of size {size:.3g} are beyond what can be computed with: take another unit")
        if sizes.max(initial=0.0) / feature > MOST:
            raise ProblemError(f"a feature of size {sizes.max():.3g} beside others of {feature:.3g}: take another unit")
        return CommonUnits(feature, target, target ** _degree(loss))

    def stated(self, sites: Mapping[str, SiteProblem]) -> dict[str, SiteProblem]:
        """The sites' problems in these units; ``ProblemError`` for a radius far beyond all features."""
        if self == CommonUnits():
            return dict(sites)
        return {name: self._site(site) for name, site in sites.items()}

    def plane(self, weights: FloatArray, n_features: int) -> FloatArray:
        """Weights (D,) for features and targets as given from weights in these units."""
        given = weights * self.target
        given[:n_features] /= self.feature
        return given

    def bounds(self, certificate: Certificate) -> Certificate:
        """Bounds on the risk as given from bounds in these units."""
        upper, lower, scale = (self.risk * part for part in (certificate.upper, certificate.lower, certificate.scale))
        return replace(certificate, upper=upper, lower=lower, scale=scale)

    def _site(self, site: SiteProblem) -> SiteProblem:
        spec, s, t = site.spec, self.feature, self.target
        if spec.radius / s > MOST:
            raise ProblemError(f"a radius of {spec.radius:.3g} is too large beside features of size {s:.3g}")
        stated = replace(
            spec, radius=spec.radius / s, label_flip_cost=spec.label_flip_cost * (t / s),
            support=self._support(spec.support), loss=_in_unit(spec.loss, t),
        )
        labels = site.labels / t if spec.loss.task == "regression" else site.labels
        return replace(site, features=site.features / s, labels=labels, spec=stated)

    def _support(self, support: Support | None) -> Support | None:
        s, t = self.feature, self.target
        if isinstance(support, BoxSupport):
            return BoxSupport(support.low / s, support.high / s, support.target_low / t, support.target_high / t)
        if support is None:
            return None
        # One length for every row: the same half-spaces, and numbers of order one for the solvers.
        column = None if support.target_column is None else support.target_column * t
        rows = support.matrix * s if column is None else np.column_stack([support.matrix * s, column])
        sizes = np.abs(rows).max(axis=1)
        sizes = np.where(sizes > 0, sizes, 1.0)
        return PolytopeSupport(
            support.matrix * (s / sizes[:, None]), support.limits / sizes, None if column is None else column / sizes
        )


def _largest(parts: list[FloatArray]) -> float:
    """Largest absolute value."""
    return max(float(np.abs(part).max(initial=0.0)) for part in parts)


def _target_of(support: Support | None) -> float:
    """Largest target that the support allows for, where no row has one; 0 where it does not say."""
    if isinstance(support, BoxSupport):
        return float(_finite(np.array([support.target_low, support.target_high])).max())
    if support is None or support.target_column is None:
        return 0.0
    return float(_walls(support.limits, support.target_column[:, None])[0])


def _features_of(support: Support | None) -> FloatArray:
    """Largest values that the support allows for, where all features are 0; 0 where it does not say."""
    if isinstance(support, BoxSupport):
        return np.maximum(_finite(support.low), _finite(support.high))
    return np.zeros(1) if support is None else _walls(support.limits, support.matrix)


def _finite(ends: FloatArray) -> FloatArray:
    return np.where(np.isfinite(ends), np.abs(ends), 0.0)


def _walls(limits: FloatArray, matrix: FloatArray) -> FloatArray:
    """How far each coordinate alone can go until the last wall that it meets; 0 where there is none."""
    reach = np.zeros(matrix.shape)
    np.divide(np.abs(limits)[:, None], np.abs(matrix), out=reach, where=matrix != 0)
    return np.asarray(reach.max(axis=0, initial=0.0))


def _degree(loss: Loss) -> int:
    return 2 if isinstance(loss, Huber | Squared) else 1


def _in_unit(loss: Loss, target: float) -> Loss:
    """L' with ``L(t z) = t^h L'(z)``."""
    return replace(loss, epsilon=loss.epsilon / target) if isinstance(loss, Huber | EpsilonInsensitive) else loss
