"""Plan: what to train for an asset type, with which method, on which schedule, behind which gates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from models.basics import ProblemError
from models.conformal.coverage import asked_level
from models.site_ambiguity.ball import WHOLE_SIMPLEX, MixtureBall, MixtureNorm
from services.contracts.base import Contract, Slug
from services.contracts.errors import InvalidInputError
from services.contracts.evaluation.calibration import COVERAGE, Coverage, Over
from services.contracts.keys.signing import check_public_key
from services.contracts.plans.gates import CLASS_GATES, TARGET_GATES, Gates
from services.contracts.plans.waiting import Waiting, waiting_refusal
from services.contracts.problems.noise import NoiseSpec
from services.contracts.problems.training_spec import RadiusRule, TrainingSpec
from services.contracts.problems.tuning import TuningChoice
from services.contracts.problems.tuning_curve import TuningCurve
from services.contracts.wire.masking import LEAST_MEMBERS
from services.contracts.wire.messages import Reveal

Audit = Literal["contradictions", "every round"]
TUNE_ONLY = "tune_only"
"""What is set, among the overrides of a run's plan, for one that chooses its terms and trains nothing."""


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

    @property
    def is_every(self) -> bool:
        """Whether every mix of sites lies in it, whatever their weights: no two are farther apart than 2."""
        return self.radius >= WHOLE_SIMPLEX.radius

    @property
    def words(self) -> str:
        """The ball in a few words."""
        if self.radius == 0:
            return "none: the weights are trusted"
        within = "every mix of sites" if self.is_every else f"{self.norm}, radius {self.radius:.4g}"
        return f"{within}: the risk is that of the worst one in it"


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


ON_SUMS, ON_SINGLE_ANSWERS = "cohort-bundle", "level-bundle"
"""Methods of a plan that names none: the one of fewest rounds for what the coordinator sees."""


class Plan(Contract):
    """A plan as an operator writes it.

    ``site_settings`` holds, by site id, what a site has of its own. Explicit weights go before ``site_weights``; when a
    weighted site does not join a run, the weights of those that did are scaled up to sum to 1.

    ``reveal`` says what the coordinator sees of a round: masked sums over cohorts of ``min_cohort`` plants or more, or
    each site's own answer, which every site's policy must allow. On sums a run needs all of its sites: one that is away
    holds it up for ``absence_patience_seconds``, then the run goes on without it. A round comes out where the share
    ``sum_threshold`` of a cohort answered. ``auditor`` is the nkey of the one to whom the plants of a cohort open two
    rounds whose sums contradict each other; every site's policy must list it. ``audit`` "every round": they open all
    rounds at the end of a run, and its version stays challenger until the auditor's verdict is filed.
    """

    name: Slug
    asset_type: Slug
    method: Slug = Field(default=ON_SUMS, description=f"with reveal 'each site' the default is {ON_SINGLE_ANSWERS}")
    reveal: Reveal = "sums"
    min_cohort: int = Field(default=LEAST_MEMBERS, ge=LEAST_MEMBERS, le=1000)
    sum_threshold: float = Field(default=2.0 / 3.0, ge=2.0 / 3.0, le=1)
    auditor: str | None = Field(default=None, description="public nkey of who finds the liar; only with sums")
    audit: Audit = Field(default="contradictions", description="what is opened to the auditor, and when")
    noise: NoiseSpec | None = Field(default=None, description="on the sums of the rounds; None: no noise")
    parameters: dict[str, float] = Field(default_factory=dict, description="the method's own numbers")
    spec: TrainingSpec = TrainingSpec()
    warm_start: bool = Field(
        default=True, description="a run begins with what still holds of the plan's last one: cuts of plants whose "
        "rows did not change, and its weights as the first question",
    )
    gap: float = Field(default=1e-3, gt=0, lt=1, description="certified relative gap at which training stops")
    absolute_gap: float | None = Field(
        default=None, ge=0, allow_inf_nan=False,
        description="distance of the bounds that is near enough too, for an optimum at or near 0, in the units of the "
        "loss; None: gap times a thousandth of the risk of zero weights",
    )
    max_rounds: int = Field(default=100, ge=1, le=10_000)
    sites: tuple[Slug, ...] = Field(default=(), description="empty: every active site of the asset type")
    site_weights: Literal["equal", "samples"] = "equal"
    largest_share: float = Field(
        default=0.5, gt=0, le=1,
        description="of weights by samples: no site of three or more weighs more, however many rows it says it has",
    )
    sample_factor: float = Field(
        default=100.0, gt=1, allow_inf_nan=False,
        description="of weights by samples: a site that says it has so many times the rows of the others' median, or "
        "of its own in the run before (or so many times fewer), does not take part",
    )
    mixture: MixtureSpec = MixtureSpec()
    tuning: TuningChoice = Field(default=None, description='grid, or "auto"; None: the terms stay as they are written')
    tuned: TuningCurve | None = Field(default=None, description="of a run's plan: what its tuning chose")
    overrides: dict[str, bool | int | float] | None = Field(
        default=None, description="of a run's plan: what was set for this run alone"
    )
    site_settings: dict[Slug, SiteSettings] = Field(default_factory=dict)
    min_sites: int = Field(default=1, ge=1)
    coverage: Coverage | None = Field(
        default=None, description=f"of sets and intervals, a condition of promotion; None: {COVERAGE} where the "
        "held-out rows are enough, and no condition",
    )
    coverage_shift: float = Field(
        default=0.0, ge=0, lt=1, allow_inf_nan=False,
        description="coverage holds for distributions within this distance in total variation too",
    )
    coverage_over: Over = Field(
        default="every group", description="of whom coverage is: every plant or cohort whose counts are known, or the "
        "worst mixture in the plan's ball around the weights",
    )
    round_deadline_seconds: float = Field(default=60.0, gt=0, le=86_400)
    absence_patience_seconds: float = Field(
        default=60.0, ge=0, le=86_400,
        description="how long a run waits, below min_sites or without a NATS server, before it fails",
    )
    waiting: Waiting | None = Field(
        default=None, description="how long a round waits for whom; None: for all, until their deadline"
    )
    cron: str | None = Field(default=None, description="five-field cron schedule; None: only when triggered")
    timezone: str = "UTC"
    auto_promote: bool = True
    gates: Gates = Gates()

    @model_validator(mode="before")
    @classmethod
    def _method_of_the_mode(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and data.get("reveal") == "each site" and "method" not in data:
            return {**data, "method": ON_SINGLE_ANSWERS}
        return data

    @model_validator(mode="before")
    @classmethod
    def _no_gap_of_a_network(cls, data: Any) -> Any:
        """A network has no certificate, so the gate on its gap, which others have at the start, is not asked."""
        if not isinstance(data, Mapping) or not _has_network(data.get("spec")):
            return data
        gates = data.get("gates", {})
        if isinstance(gates, Gates):
            given = gates.max_gap if "max_gap" in gates.model_fields_set else None
            return {**data, "gates": gates.model_copy(update={"max_gap": given})}
        return {**data, "gates": {"max_gap": None, **gates}} if isinstance(gates, Mapping) else data

    @property
    def tunes_only(self) -> bool:
        """Whether a run with this plan chooses its terms and ends: no round, no version."""
        return (self.overrides or {}).get(TUNE_ONLY) is True

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
    def _auditor_fits(self) -> Self:
        if self.auditor is None:
            if self.audit == "every round":
                raise ValueError('audit = "every round" needs an auditor: its public nkey')
            return self
        if self.reveal != "sums" or self.method != ON_SUMS:
            raise ValueError(f'an auditor goes with reveal = "sums" and the method {ON_SUMS}, whose sums are compared')
        try:
            check_public_key(self.auditor)
        except InvalidInputError as error:
            raise ValueError(f"auditor: {error}") from None
        return self

    @model_validator(mode="after")
    def _waiting_fits(self) -> Self:
        if self.waiting is None:
            return self
        if refusal := waiting_refusal(self.reveal, self.method):
            raise ValueError(refusal)
        strangers = sorted(set(self.waiting.sites) - set(self.sites)) if self.sites else []
        if strangers:
            raise ValueError(f"waiting names sites that are not in sites: {', '.join(strangers)}")
        return self

    @model_validator(mode="after")
    def _coverage_fits(self) -> Self:
        try:
            asked_level(COVERAGE if self.coverage is None else self.coverage, self.coverage_shift)
        except ProblemError as error:
            raise ValueError(str(error)) from None
        return self

    @model_validator(mode="after")
    def _gates_fit(self) -> Self:
        task = self.spec.loss.task
        if self.spec.network is not None and self.gates.max_gap is not None:
            raise ValueError(
                "a network has no certificate, for its objective is not convex: leave the gate max_gap out; "
                "min_f1, min_site_f1 and coverage say what it must show"
            )
        wrong = self.gates.of_other_task(task)
        if wrong:
            raise ValueError(
                f"the gate {wrong[0]} says nothing of a {task} (loss {self.spec.loss.name}); "
                f"its own gates are {', '.join(TARGET_GATES if task == 'regression' else CLASS_GATES)}"
            )
        return self


def _has_network(spec: Any) -> bool:
    found = spec.get("network") if isinstance(spec, Mapping) else getattr(spec, "network", None)
    return found is not None
