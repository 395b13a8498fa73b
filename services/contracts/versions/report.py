"""Report of a model version: what was promised, what each site gave, and whether the gates hold."""

from __future__ import annotations

from typing import ClassVar

from models.losses.base import Task
from services.contracts.base import Contract, Slug
from services.contracts.evaluation.calibration import CalibrationFacts
from services.contracts.evaluation.scores import ErrorInterval, RegressionScores
from services.contracts.history.run import AnswerStatus, ExcludedSite, RoundPoint
from services.contracts.versions.version_facts import Confusion, SiteScore, VersionCertificate, VersionOrigin


class GateResult(Contract):
    """One condition on a new version: what was wanted, what was found (None: nothing), and whether it holds.

    ``name`` is the field of :class:`services.contracts.plans.gates.Gates`, or what a gate of fairness is called.
    """

    name: str
    wanted: float
    found: float | None
    holds: bool
    reason: str = ""


class CertificateReport(VersionCertificate):
    """The certificate of a version with its relative gap, ``(objective - lower_bound) / objective``."""

    gap: float


class SiteReport(SiteScore):
    """One site: its ball, its certificate, its held-out score, and its part in the rounds.

    Bytes are those of all rounds together: of tasks to the site and of answers from it.
    """

    n_samples: int | None = None
    recall: tuple[float | None, ...] | None = None
    accepted: int = 0
    absent: int = 0
    late: int = 0
    open: int = 0
    refused: int = 0
    rejected: int = 0
    last_accepted_round: int | None = None
    bytes_to_site: int = 0
    bytes_from_site: int = 0
    seconds: float = 0.0


class MissedRound(Contract):
    """A round that a site did not take part in, and why."""

    round: int
    site_id: Slug
    status: AnswerStatus
    code: str = ""
    reason: str = ""


class SensorCurve(Contract):
    """What one sensor adds to a score, or to the target, by its reading: a line through ``readings`` and ``heights``.

    ``readings`` in ``unit``, from the low to the high end of the sensor's range; between two of them the line is
    straight. ``heights`` are of the score of ``fault_class``, or, where that is empty, of the target in its unit; 0 in
    the middle of the range.
    """

    sensor: str
    unit: str
    fault_class: str = ""
    readings: tuple[float, ...]
    heights: tuple[float, ...]


class ModelReport(VersionOrigin, RegressionScores):
    """Everything a reader needs to judge a model version, and no data.

    ``f1``, ``worst_site_f1``, ``classes``, ``confusion`` (true class by row) and ``recall`` by class (None: the class
    has no counted row) belong to a model of classes; ``target``, ``unit``, ``worst_site_mae`` and the
    inherited scores to a model of a target.

    ``curves``: a line for each sensor and each class (with two classes, of the fault alone), where the model is one of
    lines: without a lift, or with splines.

    ``missed`` are rounds that a site of the run missed, ``absentees`` (round 0) sites that did not join the run,
    ``excluded`` those that it went on without.
    ``wanted_gap`` is the gap at which the plan stops training, ``seconds`` the time of all rounds. ``promotable``:
    every gate that was asked for holds.
    """

    COPIED: ClassVar = frozenset({*VersionOrigin.model_fields, *RegressionScores.model_fields, "f1"}) - {"version"}
    """Fields that the version has by the same name, but for its number: the report was written before it had one."""

    asset_type: Slug
    fingerprint: str
    certificate: CertificateReport
    wanted_gap: float
    task: Task = "classification"
    target: str | None = None
    unit: str | None = None
    f1: float | None = None
    classes: tuple[str, ...] = ()
    confusion: Confusion | None = None
    recall: tuple[float | None, ...] | None = None
    worst_site_f1: float | None = None
    worst_site_mae: float | None = None
    error_interval: ErrorInterval | None = None
    calibration_facts: CalibrationFacts | None = None
    sites: tuple[SiteReport, ...] = ()
    rounds: tuple[RoundPoint, ...] = ()
    missed: tuple[MissedRound, ...] = ()
    absentees: tuple[MissedRound, ...] = ()
    excluded: tuple[ExcludedSite, ...] = ()
    gates: tuple[GateResult, ...] = ()
    curves: tuple[SensorCurve, ...] = ()
    promotable: bool
    seconds: float
