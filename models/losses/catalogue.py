"""All losses by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, Literal, get_args

from models.basics import ProblemError
from models.losses.base import Loss, Task
from models.losses.classification import CrossEntropy, Hinge, Logistic, SmoothHinge
from models.losses.regression import EpsilonInsensitive, Huber, Pinball, Squared

LossName = Literal[
    "hinge", "smooth_hinge", "logistic", "cross_entropy", "huber", "epsilon_insensitive", "pinball", "squared"
]
_WITHOUT_A_BALL: Final = ("cross_entropy", "squared")
LOSS_NAMES: Final[tuple[LossName, ...]] = tuple(name for name in get_args(LossName) if name not in _WITHOUT_A_BALL)
"""Losses with a worst case over a ball; cross_entropy and squared, which have none, are for training without one."""

_LOSSES: Final[dict[str, Callable[..., Loss]]] = {
    "hinge": Hinge, "smooth_hinge": SmoothHinge, "logistic": Logistic, "cross_entropy": CrossEntropy, "huber": Huber,
    "epsilon_insensitive": EpsilonInsensitive, "pinball": Pinball, "squared": Squared,
}
_WITH_EPSILON: Final = ("huber", "epsilon_insensitive")


@lru_cache(maxsize=64)
def get_loss(name: str, *, epsilon: float | None = None, quantile: float | None = None) -> Loss:
    """Loss by name; ``epsilon`` belongs to huber and epsilon_insensitive, ``quantile`` to pinball (None: its default).

    ``ProblemError`` where there is no such loss, a number that the loss does not have was given, or one out of its
    range.
    """
    if name not in get_args(LossName):
        raise ProblemError(f"there is no loss {name!r}; losses are {', '.join(get_args(LossName))}")
    if epsilon is not None and name not in _WITH_EPSILON:
        raise ProblemError(f"epsilon belongs to the losses {' and '.join(_WITH_EPSILON)}, the loss is {name}")
    if quantile is not None and name != "pinball":
        raise ProblemError(f"quantile belongs to the loss pinball, the loss is {name}")
    given = {"epsilon": epsilon, "quantile": quantile}
    return _LOSSES[name](**{key: value for key, value in given.items() if value is not None})


def losses_for(task: Task) -> tuple[LossName, ...]:
    """Names of the losses of a task."""
    return tuple(name for name in LOSS_NAMES if get_loss(name).task == task)
