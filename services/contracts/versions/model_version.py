"""Model version: weights with the contract they belong to and the certificates that they carry."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from pydantic import Field, ValidationError, model_validator

from models.basics import FloatArray
from models.features.lift import Lift
from models.losses.base import Task
from models.multiclass import predict_scores
from services.contracts.documents import to_plain
from services.contracts.errors import ConflictError, InvalidInputError
from services.contracts.evaluation.calibration import Calibration, CalibrationFacts
from services.contracts.evaluation.scores import SCORE_NAMES, ErrorInterval
from services.contracts.history.run import ExcludedSite
from services.contracts.problems.all_scores import objective_of
from services.contracts.problems.lift import LiftMismatchError, draw_lift, lifted_size
from services.contracts.reading import explain
from services.contracts.versions.version_facts import SiteScore, VersionFacts

if TYPE_CHECKING:
    from models.methods.local_sgd.objectives.network import NetworkObjective

SCHEMA = "ballast.model-version/1"


class ModelVersion(VersionFacts):
    """A trained model. ``weights`` has shape (K, P + 1): a row a plane, the intercept last (0 without one).

    With a lift in ``spec`` P counts the lifted features. ``excluded``: sites that the run went on without, for their
    answers cannot be true or it waited for them in vain; the model has nothing of theirs. A version from before
    objective and risk were told apart has its objective under ``worst_case_risk``. A softmax regression has a plane
    for each class, also of two; a network has all of its parameters in one row, (1, D), as ``objectives.network``
    orders them.
    """

    weights: FloatArray
    absolute_gap: float = Field(default=0.0, description="distance of the bounds that is near enough, as the plan says")
    excluded: tuple[ExcludedSite, ...] = ()
    calibration: Calibration | None = Field(default=None, description="of sets, intervals and probabilities")
    certificate_sha256: str = Field(default="", description="digest of the certificate file; empty: there is none")
    refuted: str = Field(default="", description="why no rows have what plants told in its run; empty: some may have")
    signed_by: str = Field(default="", description="public key of the OEM's coordinator; empty: unsigned")
    signature: str = Field(default="", description="Ed25519 over all but this and the number, base 64")

    @model_validator(mode="before")
    @classmethod
    def _from_before_objectives(cls, data: Any) -> Any:
        """A version that has no objective of its own: ``worst_case_risk`` is the objective of its method."""
        if not isinstance(data, Mapping) or "objective" in data:
            return data
        from models.methods.catalogue import METHODS  # with every method, which only a version of before needs

        method = METHODS.get(str(data.get("method")))
        name = "objective of its method" if method is None else method.objective
        told = {**data, "objective": data.get("worst_case_risk"), "objective_name": name}
        if method is not None and method.is_robust:
            return told
        # The sites' risks and the interval were of that objective too: nothing is known of the risk over the balls.
        sites = (SiteScore.model_validate(site) for site in data.get("sites", ()))
        unknown = tuple(site.model_copy(update={"worst_case_risk": None}) for site in sites)
        return told | {"worst_case_risk": None, "error_interval": None, "coverage": None, "sites": unknown}

    @cached_property
    def lift(self) -> Lift | None:
        """What is done to the scaled features before the planes see them; ``ConflictError`` where it cannot be drawn.

        Another version of numpy may draw other numbers from the same seed: the fingerprint tells.
        """
        try:
            return draw_lift(self.spec.lift, len(self.asset_type.features))
        except LiftMismatchError as error:
            raise ConflictError(f"model {self.name} cannot be used here: {error}") from None

    def lifted(self, scaled: FloatArray) -> FloatArray:
        """Scaled features (N, P) as the planes see them; ``ConflictError`` as for :attr:`lift`."""
        return scaled if self.lift is None else self.lift.apply(scaled)

    @property
    def task(self) -> Task:
        """Whether the model tells classes or estimates the target."""
        return self.spec.loss.task

    @property
    def figures(self) -> dict[str, float | None]:
        """Figures by which versions are compared: of the certificate, and the held-out scores; None: not known."""
        names = ("certified_gap", "worst_case_risk", "objective", "lower_bound", "f1", *SCORE_NAMES)
        return {"rounds": float(self.rounds), **{name: getattr(self, name) for name in names}}

    @property
    def calibration_facts(self) -> CalibrationFacts | None:
        """What readers see of the calibration."""
        target = self.asset_type.target if self.task == "regression" else None
        return CalibrationFacts.of(self.calibration, None if target is None else target.width)

    def error_interval_at(self, confidence: float) -> ErrorInterval:
        """Interval around an estimate that the certified risk implies at a confidence in (0, 1).

        ``ConflictError`` for a model of classes, or one whose risk has no finite bound.
        """
        target = self.asset_type.target
        if self.task != "regression" or target is None:
            raise ConflictError(f"model {self.name} tells classes and has no target; it gives no interval")
        if self.error_interval is None:
            raise ConflictError(f"the worst-case risk of model {self.name} has no bound, so there is no interval")
        return ErrorInterval.implied(self.spec.loss.loss, target, self.error_interval.risk, confidence)

    @model_validator(mode="after")
    def _weights_fit(self) -> Self:
        missing = self.asset_type.missing_for_task(self.task)
        if missing:
            raise ValueError(missing)
        wanted = self._shape
        if self.weights.shape != wanted or not np.isfinite(self.weights).all():
            raise ValueError(f"weights must be finite and of shape {wanted}, got {self.weights.shape}")
        return self

    @property
    def _shape(self) -> tuple[int, int]:
        n_features = lifted_size(self.spec.lift, len(self.asset_type.features))
        if self.network is not None:
            return 1, self.network.size(n_features)
        of_all = self.spec.loss.of_all_scores
        return len(self.asset_type.fault_classes) if of_all else self.asset_type.heads(self.task), n_features + 1

    @property
    def network(self) -> NetworkObjective | None:
        """The network whose parameters the weights are; None where they are planes."""
        found = objective_of(self.spec, self.asset_type)
        return None if found is None or self.spec.network is None else cast("NetworkObjective", found)

    def head_scores(self, scaled: FloatArray) -> FloatArray:
        """Scores (N, K) of scaled features (N, P): of the trained planes, or of a network's classes."""
        network = self.network
        if network is not None:
            return network.scores(self.weights[0], scaled)
        return predict_scores(self.weights, self.lifted(scaled))

    def to_document(self) -> dict[str, Any]:
        """The version as JSON, exactly; :meth:`from_document` gives the same version back, bit for bit."""
        document: dict[str, Any] = {"schema": SCHEMA}
        document.update(to_plain(self))
        if self.calibration is None:  # a version of before has no such field under its signature
            del document["calibration"]
        elif self.calibration.spread is None:  # one of before intervals by the estimate, or of classes
            del document["calibration"]["spread"]
        if not self.refuted:  # nor one of before, whose answers nobody held against one another
            del document["refuted"]
        if self.tuning is None:  # a version of before tuning stays what the OEM signed
            del document["tuning"]
        if self.coupling is None:  # a version of before couplings, or of planes as the rounds left them
            del document["coupling"]
        if self.reused is None:  # a version of before warm starts
            del document["reused"]
        if self.freshness is None:  # a version of before late answers
            del document["freshness"]
        if self.spec.network is None:  # nor one of before networks
            del document["spec"]["network"]
        return document

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Version from :meth:`to_document`; raise :class:`InvalidInputError` with one line when it is not one."""
        fields = dict(document)
        schema = fields.pop("schema", None)
        if schema != SCHEMA:
            raise InvalidInputError(f"not a model version: schema must be {SCHEMA!r}, got {str(schema)[:60]!r}")
        try:
            fields["weights"] = np.asarray(fields.get("weights", ()), dtype=np.float64)
            return cls.model_validate(fields)
        except ValidationError as error:
            raise InvalidInputError(f"model version does not fit: {explain(error)}") from None
        except (TypeError, ValueError):
            raise InvalidInputError("not a model version: weights must be rows of numbers of one length") from None
