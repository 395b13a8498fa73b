"""The plant's own training rows, to hold a version against: read once, and nothing of them is sent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.basics import FloatArray, ProblemError
from models.losses.base import Task as LearningTask
from services.contracts.errors import InvalidInputError
from services.contracts.machines.asset_type import AssetType
from services.contracts.problems.training_spec import TrainingSpec
from services.site_agent.answers.local_solve import head_risks, lifted, site_problems
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.settings import SiteSettings
from services.site_agent.vault.dataset import Dataset
from services.site_agent.vault.reader import Vault
from services.site_agent.vault.records.exposure_record import ExposureRecord
from services.site_agent.vault.records.row_batches import RowBatches


class OwnRows:
    """Training rows of the plant that serve a task."""

    def __init__(self, settings: SiteSettings, asset_type: AssetType, task: LearningTask) -> None:
        """Read them; ``VaultError`` where something does not fit the contract of ``asset_type``."""
        self._asset_type, self._task = asset_type, task
        self._train = _seen(settings, Vault(settings.data, asset_type).current()).rows_for(task).train

    def __len__(self) -> int:
        """How many there are."""
        return len(self._train)

    def risks(self, spec: TrainingSpec, weights: Sequence[FloatArray]) -> FloatArray:
        """Worst-case risk (n, K) of the planes of n weights (K, P + 1) on them.

        ``InvalidInputError`` where the rows do not fit the problem of ``spec``.
        """
        try:
            rows, outcomes = lifted(spec, self._train.features), self._train.outcomes(self._task)
            heads = site_problems(spec, rows, outcomes, self._asset_type)
            return np.stack([head_risks(each, heads) for each in weights])
        except ProblemError as error:
            raise InvalidInputError(f"the plant's rows do not fit the version: {error}") from None


def _seen(settings: SiteSettings, dataset: Dataset) -> Dataset:
    """Rows that a run may see, where rows come and go by groups."""
    least = SitePolicy.from_toml(settings.policy).min_new_rows if settings.policy.exists() else 1
    if least == 1 or not settings.exposure.exists():
        return dataset
    record = ExposureRecord(settings.exposure, looking=True)
    secret = record.secret()
    record.close()
    batches = RowBatches(settings.exposure, secret, least, looking=True)
    try:
        return batches.seen(dataset)
    finally:
        batches.close()
