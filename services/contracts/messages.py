"""What crosses the border between the OEM and a plant: a task one way; an update or a refusal the other."""

from __future__ import annotations

import math
from typing import Literal, Self

import numpy as np
from pydantic import Field, field_validator, model_validator

from models.basics import FloatArray, TransportNorm
from models.methods.protocol import SupportKind
from services.contracts.base import Contract, RunId, Slug
from services.contracts.lift import LiftSpec
from services.contracts.loss import LossSpec
from services.contracts.support import PolytopeSpec, SupportSpec

Kind = Literal["join", "round", "evaluate"]
"""join: does the site take part, and with which scalars. round: one step of the method. evaluate: held-out scores."""


class TailConstants(Contract):
    """Constants of FDR Proposition 2 and the exponent of its Assumption 1; they cannot be read off the data."""

    exponent: float = Field(gt=1, allow_inf_nan=False)
    c1: float = Field(gt=0, allow_inf_nan=False)
    c2: float = Field(gt=0, allow_inf_nan=False)
    c3: float = Field(gt=0, allow_inf_nan=False)


class RadiusRule(Contract):
    """How a site finds the radius of its Wasserstein ball.

    fixed: it is ``value``. samples: ``1 / (value * N_g)`` from its own sample count. confidence: the ball holds the
    site's true distribution with probability ``confidence``, by FDR Proposition 2 where ``tail`` gives its constants;
    without them the radius is estimated in the vault by resampling (from ``seed``), and says of itself that it is an
    estimate.
    """

    rule: Literal["fixed", "samples", "confidence"] = "samples"
    value: float = Field(
        default=10.0, ge=0, allow_inf_nan=False, description="the radius, or beta; not used with confidence"
    )
    confidence: float | None = Field(default=None, gt=0, lt=1, allow_inf_nan=False)
    tail: TailConstants | None = Field(default=None, description="None: the radius is estimated")
    seed: int = Field(default=0, ge=0, le=2**53, description="of the resampling")

    @model_validator(mode="after")
    def _fields_belong_to_the_rule(self) -> Self:
        if self.rule == "confidence" and self.confidence is None:
            raise ValueError("a radius by confidence needs confidence, above 0 and below 1")
        if self.rule != "confidence" and (self.confidence is not None or self.tail is not None):
            raise ValueError(f"confidence and tail belong to the rule confidence, the rule is {self.rule}")
        if self.rule == "samples" and self.value <= 0:
            raise ValueError(f"value, the beta of the rule samples, must be above 0, got {self.value:g}")
        return self


class SiteRadius(Contract):
    """Radius of a site's ball, as the site found it by its rule.

    ``confidence``: with which probability the ball holds the site's true distribution; None: none is claimed. With
    ``radius_is_estimate`` the radius aims at that confidence and proves none.
    """

    radius: float
    radius_is_estimate: bool = False
    confidence: float | None = None


class TrainingSpec(Contract):
    """The robust problem that all sites of a run share; it says nothing of any site's data.

    ``label_flip_cost`` is what a wrong class costs; for a regression loss, what it costs to move a target by its range.
    """

    loss: LossSpec = LossSpec()
    radius: RadiusRule = RadiusRule()
    label_flip_cost: float = Field(default=1.0, gt=0)
    transport_norm: TransportNorm = "l2"
    support: SupportSpec = "unbounded"
    fit_intercept: bool = True
    lift: LiftSpec | None = Field(default=None, description="None: the method sees the scaled features themselves")

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if self.support != "unbounded" and not math.isfinite(self.loss.loss.lipschitz):
            raise ValueError(f"the {self.loss.name} loss is for training without a ball: set support to unbounded")
        if self.support != "unbounded" and self.loss.loss.lines is None:
            raise ValueError(
                f"the {self.loss.name} loss has a robust risk for unbounded features only; set support to unbounded, "
                "or take a piecewise linear loss (hinge, epsilon_insensitive, pinball)"
            )
        if isinstance(self.support, PolytopeSpec) and self.lift is not None:
            raise ValueError("a polytope speaks of the features themselves: leave out the lift, or the polytope")
        return self

    @property
    def support_kind(self) -> SupportKind:
        """What bounds the features: nothing, the sensor ranges, or a polytope."""
        if isinstance(self.support, PolytopeSpec):
            return "polytope"
        return "unbounded" if self.support == "unbounded" else "box"


class _WithArrays(Contract):
    arrays: dict[str, FloatArray] = Field(default_factory=dict)

    @field_validator("arrays")
    @classmethod
    def _float64(cls, arrays: dict[str, FloatArray]) -> dict[str, FloatArray]:
        for name, array in arrays.items():
            if array.dtype != np.dtype("float64"):
                raise ValueError(f"array {name} must be float64, got {array.dtype}")
        return arrays


class _Addressed(Contract):
    """A question to a site, or what the site says to it."""

    kind: Kind
    site_id: Slug
    run_id: RunId
    round: int = Field(ge=0)


class _Answer(_Addressed):
    """``task_sha256`` is the digest of the task that is answered."""

    task_sha256: str


class Task(_Addressed, _WithArrays):
    """What the coordinator asks of one site. ``contract`` is the asset type's fingerprint."""

    type: Literal["task"] = "task"
    method: Slug
    asset_type: Slug
    contract: str
    spec: TrainingSpec
    parameters: dict[str, float] = Field(default_factory=dict)


class SiteUpdate(_Answer, _WithArrays):
    """A site's answer: arrays of model size and scalars (as 0-d arrays, so that a digit more changes no size).

    Shapes by kind, K heads, D weights, C classes:
    join: ``n_samples`` (), ``radius`` (), ``radius_is_estimate`` () 0 or 1, ``confidence`` () of the ball (0: none is
    claimed), ``lift_check`` () (0: no lift); round: what the method's ``answer_shapes`` says, each with a leading K;
    evaluate: ``risk`` (K,) worst-case risk on the training part; on the held-out part ``loss`` (), the mean training
    loss, the heads summed, and for a classification ``confusion`` (C, C) true by predicted counts, for a regression the
    sums of ``scores.REGRESSION_SUMS``, () each.
    """

    type: Literal["update"] = "update"


RefusalCode = Literal[
    "method_not_allowed", "asset_type_not_allowed", "message_not_allowed", "message_too_large", "too_few_samples",
    "one_class_only", "no_labels", "no_data", "bad_data", "contract_mismatch", "wrong_site", "bad_task",
    "internal_error", "exposure_limit", "budget_spent", "question_refused",
]


class SiteRefusal(_Answer):
    """A site's no. ``reason`` is a fixed sentence for the code and quotes no data; details stay in the site's log."""

    type: Literal["refusal"] = "refusal"
    code: RefusalCode
    reason: str


class Hello(Contract):
    """A site agent says that it is connected."""

    type: Literal["hello"] = "hello"
    site_id: Slug
    version: str


Message = Task | SiteUpdate | SiteRefusal | Hello
