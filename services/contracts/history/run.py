"""Run and round records: metadata of a training run, never data."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from models.worst_case.radius import mixture_confidence
from services.contracts.base import Contract, RunId, Slug
from services.contracts.history.events import NEVER_TRUE
from services.contracts.plans.plan import Plan
from services.contracts.problems.training_spec import SiteRadius

RunStatus = Literal["pending", "running", "completed", "failed", "cancelled"]
AnswerStatus = Literal["accepted", "absent", "late", "refused_by_site", "rejected", "excluded", "open"]


Exchange = tuple[bytes, bytes]
"""Frame of a task, and of a site's answer to it."""


class Bounds(Contract):
    """What a method proves of the optimum of its objective, ``lower <= optimum <= upper``, from its ``Certificate``.

    ``gap`` is the relative distance ``(upper - lower) / upper``, infinite before the first bound.
    """

    upper: float
    lower: float
    gap: float


class SiteAnswer(Contract):
    """Metadata of what one site did in one round.

    ``status``: ``accepted``; ``absent`` (nobody there); ``late`` (no answer by the deadline); ``refused_by_site`` (the
    site said no); ``rejected`` (admission said no); ``excluded`` (the run goes on without it, as :class:`ExcludedSite`
    says); ``open`` (it works on the question, and its answer will count in a later round). ``code`` and
    ``reason`` say why. ``question``: round of the question, where that is an earlier one; 0: the round's own.
    """

    site_id: Slug
    status: AnswerStatus
    code: str = ""
    reason: str = ""
    bytes_in: int = Field(default=0, ge=0)
    bytes_out: int = Field(default=0, ge=0)
    seconds: float = Field(default=0.0, ge=0)
    payload_sha256: str = ""
    question: int = Field(default=0, ge=0)


class RoundPoint(Bounds):
    """One round's bounds and cost; ``fresh_weight`` is the share of the sites' weight that answered it."""

    round: int = Field(ge=1)
    fresh_weight: float
    seconds: float
    overhead_seconds: float = Field(description="of these, not spent waiting for the slowest site")


class RoundRecord(RoundPoint):
    """One committed round with its certificate."""

    run_id: RunId
    started_at: datetime
    answers: tuple[SiteAnswer, ...]


class SiteBall(SiteRadius):
    """A site's share of the mixture, and the ball around its data; ``label_flip_cost`` None: the plan's."""

    site_id: Slug
    weight: float
    label_flip_cost: float | None = None


class SiteTermsRecord(SiteBall):
    """A site's scalars as they entered the run; ``drift`` and ``exposed`` as it told them, None: not told.

    ``own_scores``: whether it tells an evaluation its own scores in a run on sums; None: not told, so it is asked.
    """

    n_samples: int
    drift: float | None = None
    exposed: float | None = None
    own_scores: bool | None = None


class ExcludedSite(Contract):
    """A site that a run went on without from ``round`` on.

    ``code`` where its answers cannot be true: ``implausible`` or ``not_finite`` (one answer alone), ``contradiction``
    (two of its answers, whose rounds the reason names; the SHA-256 of both stand in the round records), ``copied`` (it
    and another site tell the same), ``false_shares`` (what it dealt of its masks). Any other: a run on sums went on
    without it because it was away for too long, refused, or has told all that its policy lets it.
    """

    site_id: Slug
    round: int = Field(ge=1)
    code: str
    reason: str

    @property
    def is_convicted(self) -> bool:
        """Whether its answers cannot be true."""
        return self.code in NEVER_TRUE


class SummedSites(Contract):
    """A cohort: sites of whose answers the coordinator saw sums alone."""

    name: Slug
    sites: tuple[Slug, ...]


class RunStart(Contract):
    """With what a run began: the asset type's fingerprint, the completed run that it goes on from, and its cohorts.

    No ``cohorts``: they are dealt by the run's id.
    """

    contract: str
    after: RunId | None = None
    cohorts: tuple[SummedSites, ...] = ()


STAYS = (
    "the audit trail; backups made before (delete them when their time is over, and restore one by `ballast restore "
    "--later` alone, which unlearns the plant again); pages that the databases have freed, until they are vacuumed; "
    "lines of logs that name it, in files and in runs of Prefect's pages, until these are deleted; tables of runs in "
    "Prefect's events, which it deletes after seven days"
)
"""Where a plant that left still stands after it was forgotten."""


class Leaving(Contract):
    """A plant that left: the run is to make a version that never had it.

    ``at_once``: it is forgotten when the run ends, else when a version without it is champion. ``done``: it is
    forgotten, and ``site_id`` is a pseudonym.
    """

    site_id: Slug
    at_once: bool = False
    done: bool = False


class Run(Contract):
    """One execution of a plan. ``plan`` is the plan as it was when the run began."""

    run_id: RunId
    plan: Plan
    status: RunStatus
    reason: str = ""
    doing: str = Field(default="", description="of an unfinished run: its step, and the exchange of a tuning")
    created_at: datetime
    updated_at: datetime
    rounds: int = 0
    sites: tuple[SiteTermsRecord, ...] = ()
    absentees: tuple[SiteAnswer, ...] = Field(default=(), description="sites that did not join, and why")
    excluded: tuple[ExcludedSite, ...] = Field(default=(), description="sites that the run went on without, and why")
    upper: float | None = None
    lower: float | None = None
    gap: float | None = None
    fresh_weight: float | None = None
    cancel_requested: bool = False
    flow_run_id: str | None = None
    mlflow_run_id: str | None = None
    model_version: str | None = None
    start: RunStart | None = Field(default=None, description="null: before the join, and of runs of earlier releases")
    leaving: Leaving | None = Field(default=None, description="the plant that the run trains without, for good")

    @property
    def members(self) -> tuple[SiteTermsRecord, ...]:
        """Sites whose answers make the model: those that joined and were not excluded, their weights summing to 1."""
        excluded = {each.site_id for each in self.excluded}
        left = [site for site in self.sites if site.site_id not in excluded]
        total = sum(site.weight for site in left)
        if not excluded or total <= 0:
            return tuple(left)
        return tuple(site.model_copy(update={"weight": site.weight / total}) for site in left)

    @property
    def mixture_confidence(self) -> float | None:
        """Probability that the mixture of the sites' balls holds the mixture of their truths; None: none is claimed."""
        confidences = [site.confidence for site in self.members]
        if not confidences or None in confidences:
            return None
        return mixture_confidence(confidence for confidence in confidences if confidence is not None)


class OrderedRun(Run):
    """A run as it is answered to whoever asks for it."""

    notices: tuple[str, ...] = Field(default=(), description="what its plan says that is allowed and seldom meant")
