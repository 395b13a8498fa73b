"""What crosses the border between the OEM and a plant: a task one way; an update or a refusal the other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
from pydantic import ConfigDict, Field, field_validator, model_validator

from models.basics import FloatArray, TransportNorm
from services.contracts.base import Contract, RunId, Slug
from services.contracts.coupling import CouplingTask
from services.contracts.lift import LiftSpec
from services.contracts.loss import LossSpec
from services.contracts.masking import (
    Delivery,
    MaskedWords,
    MaskingAnswer,
    MaskingCohort,
    MaskingTask,
    MaskKey,
    MaskKeys,
    OpenRounds,
    Preparation,
    SealedOpenings,
    Unmasked,
    Unmasking,
)
from services.contracts.network import NetworkSpec
from services.contracts.support import PolytopeSpec, SupportSpec
from services.contracts.tuning import TuningTask

if TYPE_CHECKING:
    from models.methods.protocol import SupportKind

Kind = Literal["join", "agree", "prepare", "tune", "round", "unmask", "open", "evaluate"]
"""join: does the site take part, and with which scalars. tune: cuts of candidates' risks on rows without a fold, and
scores on that fold; or losses of the scores of trained planes, for their coupling. round: one step of the method.
evaluate: held-out scores.

On sums (``services.masking``) also agree: keys of the masks; prepare: shares of a round's secrets; unmask: shares that
take the masks off a sum; open: two rounds whose sums contradict each other, to the plan's auditor alone.
"""

Reveal = Literal["sums", "each site"]
"""What the coordinator sees of a run's rounds: sums over cohorts of plants, or the answer of each plant."""

ON_SUMS: dict[Kind, tuple[type[MaskingTask], type[MaskingAnswer]]] = {
    "agree": (MaskingCohort, MaskKey),
    "prepare": (MaskKeys, Preparation),
    "tune": (Delivery, MaskedWords),
    "round": (Delivery, MaskedWords),
    "unmask": (Unmasking, Unmasked),
    "open": (OpenRounds, SealedOpenings),
    "evaluate": (Delivery, MaskedWords),
}
"""By kind, what a task of a run on sums brings beside its arrays, and what answers it."""


MultiClass = Literal["one_vs_rest", "crammer_singer"]
"""How more than two classes are trained: a plane a class against the rest, or all of them as one problem."""


def _is_default(multi_class: object) -> bool:
    """Written is what is not the default: plants and digests of before know no such key."""
    return multi_class == "one_vs_rest"


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
    network: NetworkSpec | None = Field(
        default=None, description="of the loss cross_entropy; None: scores that are linear in the features"
    )
    multi_class: MultiClass = Field(
        default="one_vs_rest", exclude_if=_is_default, description="of more than two classes; crammer_singer: one "
        "worst case, one mixture of the sites and one certificate for all of them"
    )

    @model_validator(mode="after")
    def _classes_fit(self) -> Self:
        if self.multi_class == "crammer_singer" and (self.loss.name != "hinge" or self.support != "unbounded"):
            raise ValueError(
                "crammer_singer is the hinge of all classes on features without bounds: set loss to hinge and support "
                "to unbounded, or multi_class to one_vs_rest"
            )
        return self

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if self.support != "unbounded" and not math.isfinite(self.loss.loss.lipschitz):
            raise ValueError(f"the {self.loss.name} loss is for training without a ball: set support to unbounded")
        if self.support != "unbounded" and self.loss.loss.lines is None:
            raise ValueError(
                f"the {self.loss.name} loss has a robust risk for unbounded features only; set support to unbounded, "
                "or take a piecewise linear loss (hinge, epsilon_insensitive, pinball)"
            )
        if self.network is not None and not self.loss.of_all_scores:
            raise ValueError(f"a network is trained with the loss cross_entropy, got {self.loss.name}")
        if self.loss.of_all_scores and (self.lift is not None or not self.fit_intercept):
            raise ValueError(
                "cross_entropy scores the scaled features themselves: leave out the lift (a network bends by itself) "
                "and keep the intercept"
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
    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

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
    """What the coordinator asks of one site. ``contract`` is the asset type's fingerprint.

    ``reveal`` is the run's; on sums ``masking`` says how the answer is to be masked, as :data:`ON_SUMS` has it by kind.
    """

    type: Literal["task"] = "task"
    method: Slug
    asset_type: Slug
    contract: str
    spec: TrainingSpec
    parameters: dict[str, float] = Field(default_factory=dict)
    reveal: Reveal = "each site"
    masking: MaskingTask | None = None
    tuning: TuningTask | CouplingTask | None = Field(
        default=None, description="what a task tune asks; None with every other"
    )

    @model_validator(mode="after")
    def _tuning_fits(self) -> Self:
        if (self.kind == "tune") != (self.tuning is not None):
            raise ValueError("a task tune says what it asks, and no other does")
        return self

    @model_validator(mode="after")
    def _masking_fits(self) -> Self:
        if self.masking is None:
            if self.reveal == "sums" and self.kind not in ("join", "evaluate"):
                raise ValueError(f"a task {self.kind} of a run on sums must say how its answer is to be masked")
            return self
        if self.reveal != "sums":
            raise ValueError("only a run on sums masks answers")
        if self.kind not in ON_SUMS or not isinstance(self.masking, ON_SUMS[self.kind][0]):
            raise ValueError(f"a task {self.kind} cannot bring a {type(self.masking).__name__}")
        if self.masking.run_id != self.run_id:
            raise ValueError(f"the masks are of run {self.masking.run_id}, the task is of run {self.run_id}")
        return self


class SiteUpdate(_Answer, _WithArrays):
    """A site's answer: arrays of model size and scalars (as 0-d arrays, so that a digit more changes no size).

    Shapes by kind, K heads, D weights, C classes:
    join: ``n_samples`` (), ``radius`` (), ``radius_is_estimate`` () 0 or 1, ``confidence`` () of the ball (0: none is
    claimed), ``lift_check`` () (0: no lift); tune, of part j: ``risk_j``, ``cut_height_j``, ``norm_weight_j`` (K,),
    ``slope_j`` (K, D) and on a box ``swing_j`` (K, P), or ``score_j`` as ``models.tuning.scores`` has it; round:
    what the method's ``answer_shapes`` says, each with a leading K;
    evaluate: ``risk`` (K,) worst-case risk on the training part; on the held-out part ``loss`` (), the mean training
    loss, the heads summed, and for a classification ``confusion`` (C, C) true by predicted counts, for a regression the
    sums of ``scores.REGRESSION_SUMS``, () each. An evaluation that asks for ``calibration`` (), the number of the
    grid, gets the whole numbers of ``calibration.calibration_shapes`` alone (number 2: by the estimate too). Where
    the task asks for masks there are no arrays, and ``masking`` holds the answer.
    """

    type: Literal["update"] = "update"
    masking: MaskingAnswer | None = None
    data_digest: str = Field(
        default="", pattern=r"^([0-9a-f]{64})?$",
        description="of a join: keyed digest of the rows and terms, by a secret of the vault; empty: none is told",
    )
    drift: float | None = Field(
        default=None, ge=0, le=1, allow_inf_nan=False,
        description="of a join: how far the readings have moved since the first one; None: not told",
    )
    exposed: float | None = Field(
        default=None, ge=0, le=1, allow_inf_nan=False,
        description="of a join: share of the rows that differences of answers isolate; None: not told",
    )


RefusalCode = Literal[
    "method_not_allowed", "asset_type_not_allowed", "message_not_allowed", "message_too_large", "too_few_samples",
    "one_class_only", "no_labels", "no_data", "bad_data", "contract_mismatch", "wrong_site", "bad_task",
    "internal_error", "exposure_limit", "budget_spent", "question_refused",
    "mode_not_allowed", "cohort_not_allowed", "auditor_not_allowed", "masks_missing", "masks_refused", "noise_limit",
    "noise_refused",
]


class SiteRefusal(_Answer):
    """A site's no. ``reason`` is a fixed sentence for the code and quotes no data; details stay in the site's log."""

    type: Literal["refusal"] = "refusal"
    code: RefusalCode
    reason: str


class Hello(Contract):
    """A site agent says that it is connected. ``instance`` is another at every start of an agent."""

    type: Literal["hello"] = "hello"
    site_id: Slug
    version: str
    instance: str = Field(default="", max_length=32)


Message = Task | SiteUpdate | SiteRefusal | Hello
