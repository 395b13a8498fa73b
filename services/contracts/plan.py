"""Plan: what to train for an asset type, with which method, on which schedule, behind which gates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Literal, Self

from pydantic import Field, model_validator

from models.losses.base import Task
from models.site_ambiguity.ball import MixtureBall, MixtureNorm
from services.contracts.base import Contract, Slug
from services.contracts.fairness import FairnessGate
from services.contracts.messages import RadiusRule, TrainingSpec


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


class MixtureSpec(Contract):
    """Ball around the sites' weights: the risk is that of its worst member, so no mix of sites in it is a surprise.

    ``radius`` 0 trusts the weights; a radius of 2 or more holds every mix, so that the worst site alone counts.
    """

    norm: MixtureNorm = "l2"
    radius: float = Field(default=0.0, ge=0, allow_inf_nan=False)

    @property
    def ball(self) -> MixtureBall:
        """The ball as the mathematics takes it."""
        return MixtureBall(self.norm, self.radius)


class SiteSettings(Contract):
    """What one site has of its own; None: as the plan says for all. ``weight`` is its share of the mixture."""

    radius: RadiusRule | None = None
    label_flip_cost: float | None = Field(default=None, gt=0)
    weight: float | None = Field(default=None, gt=0, le=1, allow_inf_nan=False)


WEIGHT_ROUNDING = 1e-9
"""By how much weights may miss a sum of 1."""


def check_weights(weights: Mapping[str, float], sites: Iterable[str]) -> None:
    """Explicit weights must be there for every site, or for none, and sum to 1; ``ValueError`` with one line."""
    if not weights:
        return
    without = sorted(set(sites) - set(weights))
    if without:
        raise ValueError(f"give a weight for every site or for none: there is none for {', '.join(without)}")
    total = math.fsum(weights.values())
    if abs(total - 1.0) > WEIGHT_ROUNDING:
        raise ValueError(f"the weights of the sites must sum to 1, they sum to {total:.12g}")


class Plan(Contract):
    """A plan as an operator writes it.

    ``site_settings`` holds, by site id, what a site has of its own. Explicit weights go before ``site_weights``; when a
    weighted site does not join a run, the weights of those that did are scaled up to sum to 1.
    """

    name: Slug
    asset_type: Slug
    method: Slug = "level-bundle"
    parameters: dict[str, float] = Field(default_factory=dict, description="the method's own numbers")
    spec: TrainingSpec = TrainingSpec()
    gap: float = Field(default=1e-3, gt=0, lt=1, description="certified relative gap at which training stops")
    absolute_gap: float | None = Field(
        default=None, ge=0, allow_inf_nan=False,
        description="distance of the bounds that is near enough too, for an optimum at or near 0, in the units of the "
        "loss; None: gap times a thousandth of the risk of zero weights",
    )
    max_rounds: int = Field(default=100, ge=1, le=10_000)
    sites: tuple[Slug, ...] = Field(default=(), description="empty: every active site of the asset type")
    site_weights: Literal["equal", "samples"] = "equal"
    mixture: MixtureSpec = MixtureSpec()
    site_settings: dict[Slug, SiteSettings] = Field(default_factory=dict)
    min_sites: int = Field(default=1, ge=1)
    round_deadline_seconds: float = Field(default=60.0, gt=0, le=86_400)
    absence_patience_seconds: float = Field(
        default=60.0, ge=0, le=86_400, description="how long a run waits, below min_sites, before it fails"
    )
    cron: str | None = Field(default=None, description="five-field cron schedule; None: only when triggered")
    timezone: str = "UTC"
    auto_promote: bool = True
    gates: Gates = Gates()

    @property
    def explicit_weights(self) -> dict[str, float]:
        """Weights that the plan gives, by site id."""
        return {site: own.weight for site, own in self.site_settings.items() if own.weight is not None}

    @model_validator(mode="after")
    def _site_settings_fit(self) -> Self:
        strangers = sorted(set(self.site_settings) - set(self.sites)) if self.sites else []
        if strangers:
            raise ValueError(f"site_settings names sites that are not in sites: {', '.join(strangers)}")
        if self.sites:
            check_weights(self.explicit_weights, self.sites)
        return self

    @model_validator(mode="after")
    def _gates_fit(self) -> Self:
        task = self.spec.loss.task
        wrong = self.gates.of_other_task(task)
        if wrong:
            raise ValueError(
                f"the gate {wrong[0]} says nothing of a {task} (loss {self.spec.loss.name}); "
                f"its own gates are {', '.join(TARGET_GATES if task == 'regression' else CLASS_GATES)}"
            )
        return self
