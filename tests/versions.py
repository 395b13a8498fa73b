"""A model version and a round by hand: whole and valid as they are, and each test says what it is about."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

from models.basics import FloatArray
from models.methods.protocol import WORST_CASE
from services.contracts.history.run import RoundRecord, SiteAnswer
from services.contracts.machines.asset_type import AssetType
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def a_version(asset_type: AssetType, weights: FloatArray, /, **changes: object) -> ModelVersion:
    """What a run of three rounds made of an asset type: planes (K, P + 1), certified to 8e-4."""
    fields: dict[str, object] = {
        "name": asset_type.name, "run_id": "ab" * 16, "plan": "nightly", "method": "level-bundle",
        "asset_type": asset_type, "spec": TrainingSpec(), "weights": weights, "rounds": 3, "certified_gap": 8e-4,
        "worst_case_risk": 0.25, "objective": 0.25, "objective_name": WORST_CASE, "lower_bound": 0.2498,
        "fresh_weight": 1.0, "created_at": START,
    }
    return ModelVersion.model_validate(fields | changes)


def an_answer(site_id: str, /, **changes: object) -> SiteAnswer:
    """A site's answer that was accepted."""
    fields = {"site_id": site_id, "status": "accepted", "bytes_in": 900, "bytes_out": 700, "seconds": 0.01}
    return SiteAnswer.model_validate(fields | changes)


def a_round(run_id: str, number: int, /, *answers: SiteAnswer, **changes: object) -> RoundRecord:
    """A round of a run, a second after the one before; the first has no lower bound."""
    first = number == 1
    fields: dict[str, object] = {
        "run_id": run_id, "round": number, "started_at": START + timedelta(seconds=number), "seconds": 0.02,
        "overhead_seconds": 0.004, "upper": 1.0 / number, "lower": -math.inf if first else 0.2,
        "gap": math.inf if first else 1.0 - 0.2 * number, "fresh_weight": 1.0, "answers": answers,
    }
    return RoundRecord.model_validate(fields | changes)
