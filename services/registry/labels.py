"""Names and tags that the registry writes, and what it reads back from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from services.contracts.base import Slug
from services.contracts.errors import ConflictError, InvalidInputError, NotFoundError
from services.contracts.history.run import Run
from services.contracts.machines.asset_type import AssetType
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.version_facts import ModelSummary, VersionSummary
from services.registry.descriptions import version_description

CHAMPION = "champion"
CHALLENGER = "challenger"
PREVIOUS = "previous-champion"
RESERVED_NAMES = frozenset({CHAMPION, CHALLENGER, PREVIOUS, "latest", "models", "runs", "versions", "aliases"})
"""Refused as model names: they would read as an alias or as a part of an address."""

MANAGED = "ballast.managed"
RUN_ID = "ballast.run_id"
ASSET_TYPE = "ballast.asset_type"
DOCUMENT_SHA256 = "ballast.document_sha256"
CHAMPIONS = "ballast.champions"
LONGEST_TAG = 5000
"""Characters of a tag that MLflow holds; units of more sensors stand in the model's metadata alone."""
ENDINGS = {"completed": "FINISHED", "cancelled": "KILLED", "failed": "FAILED"}
"""MLflow's word for how a run ended, by the store's."""
_SUMMARY_TAGS = {
    "run_id": RUN_ID, "plan": "ballast.plan", "method": "ballast.method", "asset_type": ASSET_TYPE,
    "fingerprint": "ballast.fingerprint", "rounds": "ballast.rounds", "certified_gap": "ballast.gap",
    "fresh_weight": "ballast.fresh_weight", "created_at": "ballast.created_at",
}
"""Tag of each field of a summary that every label has."""
_SLUG: TypeAdapter[str] = TypeAdapter(Slug)


def check_new_name(name: str) -> None:
    """Refuse a name that no model may have with ``InvalidInputError``."""
    if not _is_slug(name):
        raise InvalidInputError("a model's name is 1 to 40 lower-case letters, digits and inner hyphens")
    if name in RESERVED_NAMES:
        raise InvalidInputError(f"{name} is a reserved name; call the model after its asset type or plan")


def check_known_name(name: str) -> None:
    """Refuse a name that no model can have with ``NotFoundError``, before it gets into a query."""
    if not _is_slug(name):
        raise NotFoundError(f"no model {name[:60]!r} in the registry")


def _is_slug(name: str) -> bool:
    try:
        _SLUG.validate_python(name)
    except ValidationError:
        return False
    return True


def run_tags(version: ModelVersion) -> dict[str, str]:
    """Tags of the MLflow run: what one would filter runs by."""
    return {
        RUN_ID: version.run_id,
        ASSET_TYPE: version.asset_type.name,
        "ballast.plan": version.plan,
        "ballast.method": version.method,
        "ballast.task": version.task,
        "ballast.loss": str(version.spec.loss),
        "ballast.gap": repr(version.certified_gap),
        "ballast.objective": repr(version.objective),
        "ballast.lower_bound": repr(version.lower_bound),
        "ballast.reveal": version.reveal,
        "ballast.certificate": version.certificate_sha256 or "none",
        "ballast.fingerprint": version.asset_type.fingerprint,
        "mlflow.note.content": version_description(version),
    }


def started_tags(run: Run, asset_type: AssetType) -> dict[str, str]:
    """Tags of the MLflow run of a training that has begun; the rest comes with its version."""
    return {
        RUN_ID: run.run_id,
        ASSET_TYPE: asset_type.name,
        "ballast.plan": run.plan.name,
        "ballast.method": run.plan.method,
        "ballast.task": run.plan.spec.loss.task,
        "ballast.loss": str(run.plan.spec.loss),
        "ballast.reveal": run.plan.reveal,
        "ballast.fingerprint": asset_type.fingerprint,
        **{f"ballast.set.{name}": repr(value) for name, value in (run.plan.overrides or {}).items()},
    }


def version_tags(version: ModelVersion, document_sha256: str) -> dict[str, str]:
    """Label of a version: everything that a list shows, and the digest that proves the document."""
    tags = {name: value for name, value in run_tags(version).items() if name.startswith("ballast.")} | {
        **_units_tag(version),
        "ballast.asset_type_version": str(version.asset_type.version),
        "ballast.rounds": str(version.rounds),
        "ballast.fresh_weight": repr(version.fresh_weight),
        "ballast.created_at": version.created_at.isoformat(),
        "ballast.solvers": "; ".join(version.solvers) or "none",
        DOCUMENT_SHA256: document_sha256,
    }
    figures = {name: version.figures[name] for name in ("worst_case_risk", "f1", "mae", "coverage")}
    return tags | {f"ballast.{name}": repr(figure) for name, figure in figures.items() if figure is not None}


def units(version: ModelVersion) -> dict[str, str]:
    """Units of the sensors, and of the target where the model estimates one: a signature of MLflow's has none."""
    named = {feature.name: feature.unit for feature in version.asset_type.features}
    if version.task == "regression" and version.asset_type.target is not None:
        named[version.asset_type.target.name] = version.asset_type.target.unit
    return named


def _units_tag(version: ModelVersion) -> dict[str, str]:
    text = json.dumps(units(version), ensure_ascii=False)
    return {"ballast.units": text} if len(text) <= LONGEST_TAG else {}


def summary(entry: Any, aliases: Mapping[str, str]) -> VersionSummary:
    """Summary of an MLflow model version from its label; ``aliases`` by alias of the model.

    ``ConflictError`` where the label lacks a tag, or has one that does not fit.
    """
    tags, number = entry.tags, str(entry.version)
    where = f"version {number} of model {entry.name}"
    try:
        held = {field: tags[tag] for field, tag in _SUMMARY_TAGS.items()}
    except KeyError as missing:
        raise ConflictError(f"{where} lacks the tag {missing.args[0]}: it was changed in MLflow") from None
    scored = ("task", "loss", "f1", "mae", "coverage")
    held |= {name: tags[f"ballast.{name}"] for name in scored if f"ballast.{name}" in tags}
    try:
        return VersionSummary.model_validate({
            "name": entry.name, "version": number, "mlflow_run_id": entry.run_id, "worst_case_risk": _risk(tags),
            "aliases": sorted(alias for alias, version in aliases.items() if str(version) == number), **held,
        })
    except ValidationError as error:
        field = str(error.errors()[0]["loc"][0])
        tag = _SUMMARY_TAGS.get(field, f"ballast.{field}")
        raise ConflictError(f"{where} has a tag {tag} that does not fit: it was changed in MLflow") from None


def _risk(tags: Mapping[str, str]) -> str | None:
    """Worst-case risk; a label without an objective is from before the two were told apart, and names the objective."""
    from models.methods.catalogue import METHODS  # with every method, which only a version's tags need

    method = METHODS.get(tags["ballast.method"])
    if "ballast.objective" not in tags and not (method is not None and method.is_robust):
        return None
    return tags.get("ballast.worst_case_risk")


def model_summary(entry: Any) -> ModelSummary:
    """Summary of an MLflow registered model that Ballast made; ``ConflictError`` where its asset type was changed."""
    held = {alias: str(version) for alias, version in entry.aliases.items()}
    try:
        return ModelSummary(
            name=entry.name,
            asset_type=asset_type_of(entry.name, entry.tags),
            champion=held.get(CHAMPION),
            challenger=held.get(CHALLENGER),
            previous_champion=held.get(PREVIOUS),
        )
    except ValidationError:
        raise ConflictError(
            f"model {entry.name} has a name or a tag {ASSET_TYPE} that does not fit: it was changed in MLflow"
        ) from None


def asset_type_of(model: str, tags: Mapping[str, str]) -> str:
    """Asset type of a model by its tags; ``ConflictError`` where they do not say it."""
    if ASSET_TYPE not in tags:
        raise ConflictError(f"model {model} lacks the tag {ASSET_TYPE}: it was changed in MLflow")
    return tags[ASSET_TYPE]
