"""What the arguments of the estimators mean: the loss, the ball over the clients, their weights, the support."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray, ProblemError
from models.estimators.values import check_word, is_word, number, shown
from models.geometry.supports import BoxSupport, PolytopeSupport, Support
from models.losses.base import Loss, Task
from models.losses.catalogue import get_loss, losses_for
from models.site_ambiguity.ball import MixtureBall, MixtureNorm
from models.validation import box_support

ClientWeights = str | Mapping[Any, float] | None
SupportArgument = tuple[Any, ...] | BoxSupport | PolytopeSupport | None

_NORMS: Final[Mapping[object, MixtureNorm]] = {
    1: "l1", 2: "l2", np.inf: "linf", "l1": "l1", "l2": "l2", "linf": "linf",
}


def mixture_ball(norm: object, radius: object) -> MixtureBall:
    """Ball over the clients from ``client_norm`` (1, 2, inf, or "l1", "l2", "linf") and ``client_radius``.

    :class:`ProblemError` for another norm, or a radius that is none.
    """
    known = isinstance(norm, str | int | float) and not isinstance(norm, bool) and norm in _NORMS
    if not known:
        raise ProblemError(f'client_norm must be 1, 2 or inf (or "l1", "l2", "linf"), got {shown(norm)}')
    return MixtureBall(_NORMS[norm], number("client_radius", radius))


def chosen_loss(name: str, task: Task, *, epsilon: float | None = None, quantile: float | None = None) -> Loss:
    """Loss by name, if it is one of the task; ``ProblemError`` for a number that the loss does not have."""
    check_word(f"loss of a {'classifier' if task == 'classification' else 'regressor'}", name, losses_for(task))
    stated = (("epsilon", epsilon), ("quantile", quantile))
    return get_loss(name, **{word: None if value is None else number(word, value) for word, value in stated})


def check_client_weights(weights: ClientWeights, name: str = "client_weights") -> ClientWeights:
    """Weights of the clients as :func:`models.estimators.sites.site_weights` takes them, a parameter of that name.

    :class:`ProblemError` for another word or type.
    """
    if weights is None or isinstance(weights, Mapping) or is_word(weights, "uniform") or is_word(weights, "samples"):
        return weights
    raise ProblemError(f'{name} must be "uniform", "samples" or a mapping of group to share, got {shown(weights)}')


def stated_support(support: SupportArgument, n_features: int, *, regression: bool) -> Support | None:
    """Support from what the estimators take.

    ``(low, high)`` is a box (numbers or vectors); ``(C, d)`` with a matrix C the polytope ``C x <= d``; for regression
    ``(low, high, target_low, target_high)`` and ``(C, c, d)``, the polytope ``C x + c y <= d``.

    :class:`ProblemError` for anything else.
    """
    if support is None or isinstance(support, BoxSupport | PolytopeSupport):
        return support
    if not isinstance(support, tuple | list) or not 2 <= len(support) <= 4:
        raise ProblemError(
            f"support must be None or a pair (low, high), or a polytope (C, d), got {type(support).__name__}"
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
