"""What a version was trained on, as MLflow's datasets: one for each plant, by what it told on joining; never its rows.

The digest is of those few scalars (rows counted, the ball's radius and confidence, the contract's fingerprint), which
stand in the report too. It tells versions apart whose plants told other things, and proves nothing of the rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.report import ModelReport
from services.contracts.versions.version_facts import SiteScore

MOST: Final = 100
"""Plants of which each is a dataset; of more, all together are one."""
KIND: Final = "ballast-plant"


def dataset_inputs(version: ModelVersion, report: ModelReport | Mapping[str, Any]) -> list[Any]:
    """MLflow's inputs of a version's run; the numbers of rows are the report's, where it is one."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    counted = {site.site_id: site.n_samples for site in report.sites} if isinstance(report, ModelReport) else {}
    # No plant's name: MLflow keeps a dataset after the runs that name it were deleted, also when the plant has left.
    told = {
        f"plant {number} of {len(version.sites)}": _told(version, site, counted.get(site.site_id))
        for number, site in enumerate(version.sites, start=1)
    }
    if len(told) > MOST:
        rows = [count for count in counted.values() if count is not None]
        told = {"plants": {"plants": told, "n_samples": sum(rows) if rows else None}}
    columns = [
        {"name": each.name, "type": "double", "required": each.required} for each in version.asset_type.features
    ]
    context = [InputTag("mlflow.data.context", "training")]
    return [
        DatasetInput(
            Dataset(
                name=name, digest=_digest(facts), source_type=KIND, source=json.dumps({"kept_by": name}),
                schema=json.dumps({"mlflow_colspec": columns}),
                profile=None if facts["n_samples"] is None else json.dumps({"num_rows": facts["n_samples"]}),
            ),
            tags=context,
        )
        for name, facts in told.items()
    ]


def _told(version: ModelVersion, site: SiteScore, rows: int | None) -> dict[str, Any]:
    return {
        "asset_type": version.asset_type.fingerprint, "n_samples": rows,
        "radius": repr(site.radius), "confidence": repr(site.confidence),
    }


def _digest(facts: Mapping[str, Any]) -> str:
    """Of 32 characters; MLflow holds 36."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]
