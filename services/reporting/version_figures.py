"""Pictures of a version beside its report, each with its numbers: the confusion matrix and how unequal the plants are.

Only what the coordinator was told already: where the plants' policies release sums alone, the matrix is that of all
together, and there is no plant's matrix and no chart of plants.
"""

from __future__ import annotations

import json

from models.basics import FloatArray
from services.contracts.documents import to_plain
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.report import ModelReport
from services.reporting.confusion_chart import confusion_chart
from services.reporting.fairness_report import fairness_report
from services.reporting.lorenz_chart import lorenz_chart


def version_figures(
    version: ModelVersion, report: ModelReport, counts: FloatArray | None = None
) -> dict[str, str | bytes]:
    """``confusion`` and ``fairness``, each as ``.svg`` and ``.json``, where there is data for them.

    ``counts`` (C, C): held-out rows of all plants together by true and diagnosed class; None: none were counted.
    """
    return {**_confusion(version, report, counts), **_fairness(version)}


def _confusion(version: ModelVersion, report: ModelReport, counts: FloatArray | None) -> dict[str, str | bytes]:
    if counts is None or not counts.any() or version.task != "classification":
        return {}
    classes = [each.name for each in version.asset_type.fault_classes]
    whole = [[round(float(count)) for count in row] for row in counts]
    told = {
        "classes": classes, "true_by_diagnosed": whole,
        "sites": {site.site_id: site.confusion for site in report.sites if site.confusion is not None},
    }
    return {"confusion.svg": confusion_chart(classes, whole), "confusion.json": _text(told)}


def _fairness(version: ModelVersion) -> dict[str, str | bytes]:
    report = fairness_report(version)
    if not report.indices:
        return {}
    return {"fairness.svg": lorenz_chart(report, "svg"), "fairness.json": _text(report)}


def _text(value: object) -> str:
    return json.dumps(to_plain(value), indent=2, allow_nan=False) + "\n"
