"""The kind of what a task asks: within one, nobody knows factors of answers beside 1 and -1 (``isolation.factors``)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from models.basics import FloatArray
from services.contracts.problems.tuning_task import TuningTask
from services.contracts.wire.messages import Task
from services.site_agent.vault.isolation.factors import ANY_KIND

_OF_STEPS: Final = ("step_size", "stiffness")
"""Arrays of messages that ask for steps: their ends are sums of gradients, as many as the asker says."""
_BYTES: Final = 6  # 48 bits, so that the share is an exact double


def kind_of_task(task: Task) -> float:
    """The kind of a task by its loss, its message, and what its tuning asks."""
    squares = isinstance(task.tuning, TuningTask) and task.tuning.asks_squares
    return kind_of(task.spec.loss.model_dump_json(), task.arrays, squares=squares)


def kind_of(loss: str, message: Mapping[str, FloatArray], *, squares: bool = False) -> float:
    """A number in (0, 1] for each ``loss``, in words with its terms; :data:`ANY_KIND` where steps are asked for.

    So it is of ``squares``: their gradients go with the weights, so whoever asks knows as many factors as he likes.
    """
    if squares or any(name in message and message[name].any() for name in _OF_STEPS):
        return ANY_KIND
    digest = hashlib.sha256(loss.encode()).digest()
    return (1 + int.from_bytes(digest[:_BYTES], "big")) / 256.0**_BYTES
