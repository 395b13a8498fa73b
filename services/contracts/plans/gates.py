"""Gates of a plan: conditions on a new version before it becomes champion, by the task of its model."""

from __future__ import annotations

from pydantic import Field

from models.losses.base import Task
from services.contracts.base import Contract
from services.contracts.evaluation.fairness import FairnessGate


class Gates(Contract):
    """Conditions on a new version before it becomes champion; None: not asked.

    ``max_gap`` holds too where the bounds are within the plan's ``absolute_gap``.
    ``min_f1`` and ``min_site_f1`` are for classes; ``max_mae``, ``max_site_mae`` (in the target's unit) and
    ``min_coverage`` (of the 0.9 interval) for a target.
    """

    max_gap: float | None = Field(default=1e-3, gt=0)
    min_f1: float | None = Field(default=None, ge=0, le=1, description="all held-out parts together")
    min_site_f1: float | None = Field(default=None, ge=0, le=1, description="at the worst site")
    min_fresh_weight: float | None = Field(default=None, ge=0, le=1, description="share of weight that answered last")
    max_mae: float | None = Field(default=None, gt=0, allow_inf_nan=False, description="all held-out parts together")
    max_site_mae: float | None = Field(default=None, gt=0, allow_inf_nan=False, description="at the worst site")
    min_coverage: float | None = Field(default=None, ge=0, le=1, description="all held-out parts together")
    fairness: tuple[FairnessGate, ...] = Field(default=(), description="how unequally the sites may be served")

    def of_other_task(self, task: Task) -> tuple[str, ...]:
        """Gates that are asked for and that a model of this task can never answer."""
        names = CLASS_GATES if task == "regression" else TARGET_GATES
        return tuple(name for name in names if getattr(self, name) is not None)


CLASS_GATES = ("min_f1", "min_site_f1")
TARGET_GATES = ("max_mae", "max_site_mae", "min_coverage")
SITE_GATES = ("min_site_f1", "max_site_mae")
"""Gates at the worst site: those and the ones on fairness need a figure of every site."""
