"""What the arguments of the estimators of DRFL mean: the ball over the clients, their weights, the support."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from models.ambiguity import box_support
from models.estimators.sites import Sites, number, sites_of
from models.mixture import MixtureBall, MixtureNorm
from models.problem import BoxSupport, FloatArray, PolytopeSupport, ProblemError
from models.supports import Support

ClientWeights = str | Mapping[Any, float] | None
SupportArgument = tuple[Any, ...] | BoxSupport | PolytopeSupport | None

_NORMS: Final[Mapping[object, MixtureNorm]] = {
    1: "l1", 2: "l2", np.inf: "linf", "l1": "l1", "l2": "l2", "linf": "linf",
}  # fmt: skip


def mixture_ball(norm: object, radius: object) -> MixtureBall:
    """Ball over the clients from ``client_norm`` (1, 2, inf, or "l1", "l2", "linf") and ``client_radius``."""
    known = isinstance(norm, str | int | float) and not isinstance(norm, bool) and norm in _NORMS
    if not known:
        raise ProblemError(f'client_norm must be 1, 2 or inf (or "l1", "l2", "linf"), got {norm!r}')
    return MixtureBall(_NORMS[norm], number("client_radius", radius))


def client_sites(groups: ArrayLike | None, radius: Any, weights: ClientWeights) -> Sites:
    """Sites of the rows; ``weights`` "uniform" (or None), "samples", or a mapping of group to share."""
    if isinstance(weights, str) and weights not in ("uniform", "samples"):
        raise ProblemError(
            f'client_weights must be "uniform", "samples" or a mapping of group to share, got {weights!r}'
        )
    if groups is None:
        if isinstance(radius, Mapping) or isinstance(weights, Mapping):
            raise ProblemError("radius and client_weights by group need groups, the client of each row")
        return Sites(None, {"all": radius}, {"all": 1.0})
    shares = weights if isinstance(weights, Mapping) else None
    sites = sites_of(groups, radius, shares)
    if weights != "samples" or sites.labels is None:
        return sites
    return Sites(sites.labels, sites.radius, {name: float(np.mean(sites.labels == name)) for name in sites.radius})


def stated_support(support: SupportArgument, n_features: int, *, regression: bool) -> Support | None:
    """Support from what the estimators take.

    ``(low, high)`` is a box (numbers or vectors); ``(C, d)`` with a matrix C the polytope ``C x <= d``; for regression
    ``(low, high, target_low, target_high)`` and ``(C, c, d)``, the polytope ``C x + c y <= d``.
    """
    if support is None or isinstance(support, BoxSupport | PolytopeSupport):
        return support
    if not isinstance(support, tuple | list) or not 2 <= len(support) <= 4:
        raise ProblemError(
            f"support must be None, a pair (low, high) or a polytope (C, d), got {type(support).__name__}"
        )
    if np.ndim(support[0]) == 2:
        return _polytope(support, n_features, regression=regression)
    box = box_support((support[0], support[1]), n_features)
    if len(support) == 2 or box is None:
        return box
    if not regression or len(support) != 4:
        raise ProblemError(
            "a box with a range of the target is (low, high, target_low, target_high), for regression only"
        )
    return BoxSupport(box.low, box.high, number("target_low", support[2]), number("target_high", support[3]))


def _polytope(support: tuple[Any, ...] | list[Any], n_features: int, *, regression: bool) -> PolytopeSupport:
    wanted = "(C, c, d) for regression" if regression else "(C, d) for classification"
    if len(support) != 2 + int(regression):
        raise ProblemError(f"a polytope support is {wanted}, got {len(support)} parts")
    parts: list[NDArray[np.float64]] = [_array(part) for part in support]
    if parts[0].shape[1] != n_features:
        raise ProblemError(
            f"the polytope's matrix has {parts[0].shape[1]} columns, the data have {n_features} features"
        )
    return PolytopeSupport(parts[0], parts[-1], parts[1] if regression else None)


def _array(value: object) -> FloatArray:
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ProblemError("a polytope support needs arrays of numbers") from None
