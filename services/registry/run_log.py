"""What a Ballast run leaves in its MLflow run: parameters, the rounds' certificates, files."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from models.fairness.indices import gini
from services.contracts.base import Contract
from services.contracts.documents import to_plain
from services.contracts.errors import ConflictError, InvalidInputError
from services.contracts.evaluation.fairness import figures as site_figures
from services.contracts.history.run import RoundRecord
from services.contracts.problems.support import support_name
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.report import ModelReport
from services.contracts.versions.version_facts import SiteScore

BATCH = 1000
"""Metrics in one call: MLflow's limit."""

REPORT = "report.json"
"""File of the report in the MLflow run."""

ROUND_METRICS = ("upper", "lower", "gap", "fresh_weight", "seconds", "overhead_seconds")
SITE_METRICS = ("f1", "worst_case_risk", "mae", "coverage", "worst_weight")


def parameters(version: ModelVersion) -> dict[str, str]:
    """Parameters of the run: what was trained, and how."""
    spec = version.spec
    return {
        "plan": version.plan,
        "method": version.method,
        "asset_type": version.asset_type.name,
        "n_features": str(len(version.asset_type.features)),
        "n_classes": str(len(version.asset_type.fault_classes)),
        "task": version.task,
        "loss": str(spec.loss),
        "target": _target(version),
        "radius_rule": spec.radius.rule,
        "radius_value": repr(spec.radius.confidence if spec.radius.rule == "confidence" else spec.radius.value),
        "label_flip_cost": repr(spec.label_flip_cost),
        "transport_norm": spec.transport_norm,
        "support": support_name(spec.support),
        "mixture": f"{version.mixture.norm} {version.mixture.radius!r}",
        "fit_intercept": str(spec.fit_intercept).lower(),
        "solvers": "; ".join(version.solvers) or "none",
        "lift": "none" if spec.lift is None else spec.lift.words,
        "sites": str(len(version.sites)),
        "reveal": version.reveal,
    }


def _target(version: ModelVersion) -> str:
    goal = version.asset_type.target
    return "none" if goal is None or version.task != "regression" else f"{goal.name} in {goal.unit}"


def final_metrics(version: ModelVersion) -> dict[str, float]:
    """Figures of the finished model, the sites' under ``site/<id>/``; what is not finite is left out.

    The names are the same for every version, so that MLflow's pages put versions side by side.
    """
    figures: dict[str, float | None] = {**version.figures, "fresh_weight_at_end": version.fresh_weight}
    for basis in ("loss", "worst_case_risk"):
        known = [value for value in site_figures(version.sites, basis).values() if value is not None and value >= 0]
        if len(known) > 1 and sum(known) > 0:
            figures[f"fairness/{basis}/gini"] = gini(known)
            figures[f"fairness/{basis}/worst_site"] = max(known)
    for site in version.sites:
        figures |= {f"site/{site.site_id}/{name}": getattr(site, name) for name in SITE_METRICS}
    return {name: value for name, value in figures.items() if value is not None and math.isfinite(value)}


def metric_rows(version: ModelVersion, rounds: Sequence[RoundRecord]) -> list[tuple[str, float, int, int]]:
    """Key, value, timestamp in milliseconds and step of every metric.

    Timestamps come from the records, so that logging the same run again writes the same rows. The first rounds have no
    bound yet: MLflow draws no infinities, they are left out.
    """
    rows = [
        (name, float(getattr(record, name)), int(record.started_at.timestamp() * 1000), record.round)
        for record in rounds
        for name in ROUND_METRICS
        if math.isfinite(getattr(record, name))
    ]
    at = int(version.created_at.timestamp() * 1000)
    rows += [(name, value, at, version.rounds) for name, value in final_metrics(version).items()]
    return rows


def write_report_files(
    folder: Path, report: ModelReport | Mapping[str, Any], attachments: Mapping[str, str | bytes]
) -> None:
    """Write ``report.json`` and the attachments (a file name each, its text or bytes) into a folder.

    ``InvalidInputError`` for a name that is not a plain file name.
    """
    text = json.dumps(to_plain(report), indent=2, allow_nan=False)
    (folder / REPORT).write_text(text + "\n", encoding="utf-8")
    for name, content in attachments.items():
        if Path(name).name != name or name in {"", ".", "..", REPORT}:
            raise InvalidInputError(f"an attachment needs a plain file name other than report.json, got {name[:60]!r}")
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def read_report(text: str, version: ModelVersion) -> ModelReport | None:
    """Report of a version from its file; None where the file is no report of this release's form.

    ``ConflictError`` when the file belongs to another version, or was changed: its certificate, its scores or those of
    a site are not the version's.
    """
    try:
        found = ModelReport.model_validate(json.loads(text))
    except (json.JSONDecodeError, ValidationError):
        return None
    held, sites = found.certificate, {site.site_id: site for site in found.sites}
    reported = (held.rounds, held.worst_case_risk, held.lower_bound, held.gap)
    certified = (version.rounds, version.worst_case_risk, version.lower_bound, version.certified_gap)
    same = reported == certified and _said(found, ModelReport.COPIED) == _said(version, ModelReport.COPIED)
    fields = frozenset(SiteScore.model_fields)
    if not same or any(_said(sites.get(site.site_id), fields) != _said(site, fields) for site in version.sites):
        raise ConflictError(
            f"the report of version {version.version} of model {version.name} is not the one that was registered"
        )
    return found.model_copy(update={"version": version.version})  # it was written before the version had a number


def _said(source: Contract | None, fields: frozenset[str]) -> str:
    """Some fields as text, in which no number is unlike itself; empty where there is no source."""
    return "" if source is None else repr({name: to_plain(getattr(source, name)) for name in sorted(fields)})
