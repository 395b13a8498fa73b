"""What the API takes and gives where no contract of the services says it already."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints

from models.losses.base import Task
from services.contracts.asset_type import AssetType
from services.contracts.audit import AuditEvent
from services.contracts.base import Contract, RunId, Slug
from services.contracts.diagnosis import VersionName
from services.contracts.identity import ApiToken, Role, TokenId
from services.contracts.messages import TrainingSpec
from services.contracts.model_version import ConvexPart, ModelVersion, SiteScore
from services.contracts.plan import MixtureSpec
from services.contracts.records import AssetTypeRecord, PlanRecord
from services.contracts.registered import ModelSummary, VersionSummary
from services.contracts.report import GateResult
from services.contracts.run import RoundRecord, Run
from services.contracts.scores import ErrorInterval, RegressionScores
from services.contracts.site import Site

Reason = Annotated[str, StringConstraints(strip_whitespace=True, min_length=3, max_length=500)]
"""Why something is done: it goes into the audit trail."""

FEATURES_EXAMPLE: dict[str, float] = {
    "peak_frequency": 47.5,
    "power_10_20_hz": -3.1,
    "power_40_60_hz": 8.0,
    "power_over_100_hz": -6.6,
    "kurtosis_frequency": 250.0,
    "flow_mean": 39.1,
    "flow_variance": 9.6,
    "flow_skewness": -0.71,
    "flow_kurtosis": 2.45,
    "flow_peak_to_peak": 12.8,
    "flow_crest_factor": 1.12,
    "flow_rms": 39.2,
    "flow_mean_absolute_deviation": 2.56,
    "flow_cumulative_range": 46900.0,
}
"""A measurement of the built-in asset type ``triplex-pump``, for the documentation."""


class ModelDetail(ModelSummary):
    """A model with its versions, the newest first."""

    versions: tuple[VersionSummary, ...]


class VersionDetail(RegressionScores):
    """A version: what it was trained for, its certificates, sites and gates. The weights stay in the registry.

    ``worst_case_risk`` is the upper bound of the optimal worst-case risk, ``lower_bound`` the lower one, and
    ``certified_gap`` their relative distance. ``f1`` belongs to a version of classes; the scores in the target's unit
    and ``error_interval`` to one of a target.
    """

    name: Slug
    version: str
    aliases: tuple[str, ...]
    run_id: RunId
    mlflow_run_id: str
    plan: Slug
    method: Slug
    solvers: tuple[str, ...]
    mixture_confidence: float | None
    radii_are_estimates: bool
    convex_part: ConvexPart | None
    note: str
    asset_type: AssetType
    fingerprint: str
    task: Task
    spec: TrainingSpec
    mixture: MixtureSpec
    rounds: int
    certified_gap: float
    worst_case_risk: float
    lower_bound: float
    fresh_weight: float
    f1: float | None
    error_interval: ErrorInterval | None
    sites: tuple[SiteScore, ...]
    gates: tuple[GateResult, ...] | None = Field(description="null where the run is not in the store any more")
    created_at: datetime

    @classmethod
    def of(cls, version: ModelVersion, label: VersionSummary, gates: tuple[GateResult, ...] | None) -> Self:
        """Detail of a version as the registry gives it, with its label there."""
        more = {"aliases": label.aliases, "mlflow_run_id": label.mlflow_run_id, "fingerprint": label.fingerprint}
        names = set(cls.model_fields) - {*more, "gates"}
        own: dict[str, Any] = {name: getattr(version, name) for name in names}
        return cls(**own, **more, gates=gates)


class SiteEnrolment(Contract):
    """A plant to enrol, with the public key that its own ``ballast-site init`` made."""

    site_id: Slug = Field(examples=["plant-1"])
    public_key: str = Field(
        max_length=200, examples=["UDCS4GU65N7F6TT4SDHVOB6JIVEWF522RIWCUIYBMEIECC2RTZ45A4F6"],
        description="NATS user public key, U...",
    )  # fmt: skip
    asset_types: tuple[Slug, ...] = Field(default=(), examples=[["triplex-pump"]])
    description: str = Field(default="", max_length=500)


class Because(Contract):
    """Why something is done; may be left out."""

    reason: str = Field(default="", max_length=500)


class Promotion(Contract):
    """A version to make champion."""

    version: VersionName = Field(default="challenger", description="a version's number or alias")
    reason: Reason
    ignore_gates: bool = Field(default=False, description="promote also where a gate of its plan does not hold")


class Rollback(Contract):
    """The wish to go back to the champion before this one."""

    reason: Reason


class ChampionChange(Contract):
    """A model has a new champion."""

    model: Slug
    version: str
    previous_version: str | None
    actor: str
    reason: str


class TokenRequest(Contract):
    """A token to make."""

    name: str = Field(min_length=1, max_length=80, examples=["line 4 gateway"])
    role: Role
    days: float | None = Field(default=None, gt=0, le=3650, description="how long it holds; null: until revoked")


class NewToken(Contract):
    """A token as it is shown this once: ``token`` is its text."""

    token: str = Field(repr=False, description="send it as Authorization: Bearer ...; it cannot be shown again")
    token_id: TokenId
    name: str
    role: Role
    created_at: datetime
    expires_at: datetime | None


class Models(Contract):
    """Models by name."""

    models: tuple[ModelSummary, ...]


class Runs(Contract):
    """Runs, newest first."""

    runs: tuple[Run, ...]


class Rounds(Contract):
    """Rounds of a run, in order."""

    rounds: tuple[RoundRecord, ...]


class Sites(Contract):
    """Sites by id."""

    sites: tuple[Site, ...]


class AssetTypes(Contract):
    """Asset types by name and version."""

    asset_types: tuple[AssetTypeRecord, ...]


class Plans(Contract):
    """Plans by name."""

    plans: tuple[PlanRecord, ...]


class Tokens(Contract):
    """Tokens, newest first."""

    tokens: tuple[ApiToken, ...]


class AuditEvents(Contract):
    """Audit events, newest first."""

    events: tuple[AuditEvent, ...]


class Health(Contract):
    """The process answers."""

    status: str = "ok"
    version: str


class Readiness(Contract):
    """Whether every server that is needed answers; ``missing`` says what does not, and what to do."""

    ready: bool
    missing: dict[str, str] = Field(default_factory=dict)
