"""What readers see of a model version: its origin, its certificate, its scores and its sites; and its label."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from models.losses.base import Task
from services.contracts.base import Contract, RunId, Slug
from services.contracts.evaluation.fairness import SiteFairness
from services.contracts.evaluation.scores import ErrorInterval, RegressionScores
from services.contracts.history.run import Bounds, SiteBall, SummedSites
from services.contracts.machines.asset_type import AssetType
from services.contracts.plans.plan import MixtureSpec
from services.contracts.problems.coupling import Coupling
from services.contracts.problems.noise import NoisePromise
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.problems.tuning_curve import TuningCurve
from services.contracts.wire.messages import Reveal

Confusion = tuple[tuple[int, ...], ...]
"""Counts (C, C) of held-out rows, true class by row and diagnosed class by column."""


class SiteScore(SiteBall, SiteFairness, RegressionScores):
    """Scalars of one site: its ball, its held-out scores and its worst-case risk on its training part.

    ``confusion`` leaves out the classes of which the site has fewer rows than its policy asks for.
    """

    confusion: Confusion | None = None


class ReusedCuts(Contract):
    """Sites whose cuts of an earlier run count in the bounds, since they signed that nothing changed.

    They are of the run ``run_id``, or of one from which that one took them over in turn.
    """

    run_id: RunId
    sites: tuple[Slug, ...]


class PlantFreshness(Contract):
    """How fresh a plant is in a version of a run that waited for nobody.

    ``question``: round of the newest question that it answered, None where it answered none; ``came``: the round in
    which that answer came. ``at_model``: it told its risk at the model itself, so that the upper bound rests on its
    word; else it enters by its cuts. ``at_work``: the run ended while it worked on a question.
    """

    site_id: Slug
    question: int | None = None
    came: int | None = None
    at_model: bool
    at_work: bool = False


class ConvexPart(Bounds):
    """Bounds of the convex part of an objective that is not convex, around the last centre of the method.

    A small ``gap`` says that no change of the weights which the convex part sees makes the objective lower: a critical
    point. It says nothing of other models; of those the version's own certificate speaks.
    """


class VersionCertificate(Contract):
    """What is proven of a version, of which problem, and by whom.

    ``worst_case_risk`` is that of the weights over the sites' balls, in the worst mixture of ``mixture``, whatever the
    method minimised; None where it is not known. ``objective`` and ``lower_bound`` are of what it minimised,
    ``objective_name`` says what that is: only where it is the worst-case risk they speak of the best robust model.
    ``mixture`` is the ball around the sites' weights over which the risk is the worst. ``reveal`` says what the
    coordinator saw of the sites' answers, and ``cohorts`` on sums over which sites the sums were.

    ``mixture_confidence``: with which probability the mixture of the sites' balls holds the mixture of their true
    distributions, None where a site claims none; ``radii_are_estimates``: a site's radius aims at its confidence and
    proves none. ``note``: what the method says of its result, empty for most; ``convex_part``: for an objective that is
    not convex. A network, whose objective is not convex either, has no certificate: its ``lower_bound`` is minus
    infinity.
    """

    worst_case_risk: float | None
    objective: float
    objective_name: str
    lower_bound: float
    fresh_weight: float
    rounds: int
    spec: TrainingSpec
    mixture: MixtureSpec = MixtureSpec()
    reveal: Reveal = "each site"
    cohorts: tuple[SummedSites, ...] = ()
    solvers: tuple[str, ...] = ()
    mixture_confidence: float | None = None
    radii_are_estimates: bool = False
    convex_part: ConvexPart | None = None
    tuning: TuningCurve | None = Field(default=None, description="how the terms were chosen; null: as the plan says")
    noise: NoisePromise | None = Field(
        default=None, description="noise on the rounds' sums, with which the bounds hold in probability; null: none"
    )
    reused: ReusedCuts | None = Field(default=None, description="cuts of an earlier run; null: none")
    freshness: tuple[PlantFreshness, ...] | None = Field(
        default=None, description="of a run that waited for nobody, by plant; null: rounds waited for all"
    )
    coupling: Coupling | None = Field(
        default=None, description="of the classes' planes after the last round: objective and bounds are of the planes "
        "before it; null: none"
    )
    note: str = ""

    @property
    def risk_is_from_above(self) -> bool:
        """Whether ``worst_case_risk`` is a bound of the risk, which may stand above that of the rounds.

        On sums plants tell it from above, in steps.
        """
        return self.reveal == "sums" and self.worst_case_risk is not None


class VersionOrigin(Contract):
    """Which version it is, and where it comes from."""

    name: Slug
    version: str = Field(default="", description="given by the registry")
    run_id: RunId
    plan: Slug
    method: Slug
    created_at: datetime


class VersionFacts(VersionOrigin, VersionCertificate, RegressionScores):
    """All that readers see of a version: where it comes from, its certificate, its scores and its sites.

    A version of a target has the inherited scores and an ``error_interval``, one of classes has F-1 and, where rows
    were counted, their ``confusion``: of all sites together, also where each told sums alone. ``certified_gap``
    is the relative distance of ``objective`` and ``lower_bound``, infinite where nothing is proven from below.
    """

    asset_type: AssetType
    certified_gap: float
    f1: float | None = None
    confusion: Confusion | None = None
    error_interval: ErrorInterval | None = None
    sites: tuple[SiteScore, ...] = ()

    @property
    def is_certified(self) -> bool:
        """Whether its method proves bounds at all: not where the objective is not convex."""
        return self.spec.network is None


class VersionSummary(VersionOrigin):
    """A version by its label. ``get`` of the registry gives the whole version."""

    asset_type: Slug
    fingerprint: str
    rounds: int
    certified_gap: float
    worst_case_risk: float | None
    fresh_weight: float
    task: Task = "classification"
    loss: str = "hinge"
    f1: float | None = None
    mae: float | None = None
    coverage: float | None = None
    aliases: tuple[str, ...] = ()
    mlflow_run_id: str


class ModelSummary(Contract):
    """A model by name, with the versions that its aliases stand for."""

    name: Slug
    asset_type: Slug
    champion: str | None = None
    challenger: str | None = None
    previous_champion: str | None = None
