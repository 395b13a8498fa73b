"""What MLflow's pages say of a model and of a version, as Markdown for a reader who knows neither."""

from __future__ import annotations

from collections.abc import Iterable

from services.contracts.machines.asset_type import AssetType
from services.contracts.plain_words import counted
from services.contracts.versions.model_version import ModelVersion

LONGEST = 4900
"""Characters: MLflow's tables hold 5,000."""
MOST_SENSORS = 40  # a table that MLflow's page still shows at once


def model_description(asset_type: AssetType) -> str:
    """What a registered model is for, and what its aliases mean; nothing that a later version could make untrue."""
    about = asset_type.description or f"Fault diagnosis of {asset_type.name}"
    return (
        f"{_plain(about)}\n\nTrained by Ballast over plants whose rows stay with them. `champion` is the version in "
        "service, `challenger` the newest, `previous-champion` the one before the champion; promote and roll back "
        "with Ballast, which puts an alias that was moved here back. Each version says what is proven of it, and "
        "names its sensors with their units."
    )


def version_description(version: ModelVersion) -> str:
    """Certificate, scores, terms and sensors of a version, at most :data:`LONGEST` characters."""
    rows = [
        ("plan, run", f"{version.plan}, `{version.run_id}`"), ("asset type", _asset(version.asset_type)),
        ("worst-case risk", _risk(version)), ("loss", _plain(str(version.spec.loss))),
        *_scores(version), ("plants", str(len(version.sites))), ("what the coordinator saw", version.reveal),
        ("certificate file", f"`{version.certificate_sha256}`" if version.certificate_sha256 else "none"),
    ]
    parts = [_proven(version), _table(("", ""), rows)]
    if lifted := version.spec.ball_words:
        parts.append(lifted)
    if version.note:
        parts.append(_plain(version.note))
    features = version.asset_type.features
    sensors = [
        (
            each.name, each.unit, f"{each.low:g} to {each.high:g}{', log' if each.is_log else ''}",
            "yes" if each.required else "no",
        )
        for each in features[:MOST_SENSORS]
    ]
    parts.append(_table(("sensor", "unit", "range", "required"), sensors))
    if len(features) > MOST_SENSORS:
        parts.append(f"and {len(features) - MOST_SENSORS} more, in the model's metadata")
    return "\n\n".join(parts)[:LONGEST]


def _proven(version: ModelVersion) -> str:
    method = f"**{_plain(version.method)}**"
    rounds = counted(version.rounds, "round")
    if not version.is_certified:
        return f"{method} trained for {rounds}. There is no certificate."
    whose = "" if version.coupling is None else " (of its planes before their coupling)"
    return (
        f"{method} reached a certified gap of **{version.certified_gap:.3g}** in {rounds}: "
        f"{_plain(version.objective_name)} {version.objective:.6g}{whose}, and no model of its kind has one below "
        f"{version.lower_bound:.6g}."
    )


def _asset(asset_type: AssetType) -> str:
    return f"{asset_type.name} version {asset_type.version} (`{asset_type.fingerprint[:16]}`)"


def _scores(version: ModelVersion) -> list[tuple[str, str]]:
    target = version.asset_type.target
    if version.task == "regression" and target is not None:
        return [(f"mean absolute error in {target.unit}, held-out rows", _figure(version.mae)),
                ("held-out targets in the 0.9 interval", _figure(version.coverage))]
    return [("F-1, held-out rows", _figure(version.f1))]


def _risk(version: ModelVersion) -> str:
    if not version.spec.loss.has_ball:
        return "none: trained without a ball"
    return ("at most " if version.risk_is_from_above else "") + _figure(version.worst_case_risk)


def _figure(value: float | None) -> str:
    return "not known" if value is None else f"{value:.4g}"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(_plain(cell) for cell in line)} |" for line in lines)


def _plain(text: str) -> str:
    """Text on one line, which opens no tag, no new cell, and no link or picture: that would load from elsewhere."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("[", "&#91;")
