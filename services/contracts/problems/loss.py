"""The loss of a training problem, by name and with its own number; it decides whether classes or a target is learnt."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from models.losses.base import Loss, Task
from models.losses.catalogue import LossName, get_loss
from services.contracts.base import Contract


class LossSpec(Contract):
    """A loss. hinge, smooth_hinge and logistic learn classes; huber, epsilon_insensitive, pinball and squared a target.

    cross_entropy learns classes too, from the scores of all of them at once: a softmax regression or a network, by
    methods of local steps. It and squared have no worst case over a ball: they are for methods without one.

    ``epsilon`` belongs to huber and epsilon_insensitive and counts in shares of the target's range, since targets are
    scaled to [0, 1]; ``quantile`` belongs to pinball. None: the loss's default. A text stands for its name alone.
    """

    name: LossName = "hinge"
    epsilon: float | None = Field(default=None, allow_inf_nan=False)
    quantile: float | None = Field(default=None, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, given: Any) -> Any:
        return {"name": given} if isinstance(given, str) else given

    @model_validator(mode="after")
    def _is_a_loss(self) -> Self:
        get_loss(self.name, epsilon=self.epsilon, quantile=self.quantile)
        return self

    @property
    def loss(self) -> Loss:
        """The loss itself."""
        return get_loss(self.name, epsilon=self.epsilon, quantile=self.quantile)

    @property
    def task(self) -> Task:
        """``classification`` or ``regression``."""
        return self.loss.task

    @property
    def of_all_scores(self) -> bool:
        """Whether it is a loss of the scores of all classes together, not of one margin or residual."""
        return self.name == "cross_entropy"

    @property
    def has_ball(self) -> bool:
        """Whether it is trained against the worst distribution of a ball around the data: losses of one margin are."""
        return not self.of_all_scores

    def __str__(self) -> str:
        """The loss in words: its name, and its number where one was given."""
        own = {"epsilon": self.epsilon, "quantile": self.quantile}
        return " ".join([self.name, *(f"{name} {value:g}" for name, value in own.items() if value is not None)])
