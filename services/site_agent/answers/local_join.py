"""What a plant says as it joins a run: arrays of the rows as terms, and what its policy lets it tell of them beside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from models.basics import FloatArray
from services.contracts.problems.lift import draw_lift, lift_check
from services.contracts.problems.training_spec import RadiusRule
from services.contracts.wire.messages import Task
from services.site_agent.answers.local_solve import join_answer, lifted
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.vault.dataset import Dataset, Part
from services.site_agent.vault.drift import DriftRecord, drift
from services.site_agent.vault.records.exposure_gate import ExposureGate
from services.site_agent.vault.records.exposure_record import ExposureRecord
from services.site_agent.vault.row_digest import row_digest


def joined(task: Task, dataset: Dataset) -> dict[str, FloatArray]:
    """Arrays of the answer: counts, the radius of the plan's rule, and how its rows check a drawn lift."""
    train, spec = dataset.train, task.spec
    check = lift_check(draw_lift(spec.lift, train.features.shape[1]))
    return join_answer(spec, lifted(spec, train.features), train.outcomes(spec.loss.task), check)


class ToldBeside:
    """What is no array: the digest by which nothing changed, the drift, and the share of rows that are exposed."""

    def __init__(
        self, site_id: str, policy: SitePolicy, record: ExposureRecord, gate: ExposureGate, first: DriftRecord,
        sensors: str,
    ) -> None:
        """``first`` keeps what readings were like at the first join under ``sensors``, the asset type's of now."""
        self._site_id, self._policy, self._record, self._gate, self._first = site_id, policy, record, gate, first
        self._sensors = sensors

    def told(self, task: Task, whole: Dataset, dataset: Dataset, arrays: Mapping[str, FloatArray]) -> dict[str, Any]:
        """As far as the policy allows; ``whole`` are all rows, ``dataset`` those that the task learns from."""
        told: dict[str, Any] = {"data_digest": self._digest(task, dataset.train, arrays)}
        train = whole.train
        first = self._first.begin(self._sensors, train.features, task.contract)
        if self._policy.tell_drift:
            told["drift"] = drift(first, train.features)
        if self._policy.tell_exposure:
            told["exposed"] = round(self._gate.figures(train).by_differences / len(train), 4)
        return told

    def close(self) -> None:
        """Let go of the record."""
        self._first.close()

    def _digest(self, task: Task, train: Part, arrays: Mapping[str, FloatArray]) -> str:
        """Keyed digest of the rows and terms with the radius that the site joined with; empty: it tells none."""
        if not self._policy.tell_unchanged:
            return ""
        ball = RadiusRule(rule="fixed", value=float(arrays["radius"]))
        spec = task.spec.model_copy(update={"radius": ball})
        rows, outcomes = train.features, np.asarray(train.outcomes(spec.loss.task), dtype=np.float64)
        return row_digest(self._record.secret(), self._site_id, task.contract, spec, rows, outcomes)
