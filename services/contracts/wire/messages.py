"""What crosses the border between the OEM and a plant: a task one way; an update or a refusal the other."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from pydantic import ConfigDict, Field, field_validator, model_validator

from models.basics import FloatArray
from services.contracts.base import Contract, RunId, Slug
from services.contracts.problems.coupling import CouplingTask
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.problems.tuning_task import TuningTask
from services.contracts.wire.masking import (
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
    own_scores: bool | None = Field(
        default=None,
        description="of a join of a run on sums: whether an evaluation is answered by the site's own scores; None: not "
        "told, as by agents of before",
    )


RefusalCode = Literal[
    "method_not_allowed", "asset_type_not_allowed", "message_not_allowed", "message_too_large", "too_few_samples",
    "one_class_only", "no_labels", "no_data", "bad_data", "contract_mismatch", "wrong_site", "bad_task",
    "internal_error", "exposure_limit", "budget_spent", "question_refused",
    "mode_not_allowed", "cohort_not_allowed", "auditor_not_allowed", "masks_missing", "masks_refused", "noise_limit",
    "noise_refused", "work_limit", "task_not_signed",
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
