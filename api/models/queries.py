"""Models and versions as both faces show them."""

from __future__ import annotations

from api.backend.wiring import Backend
from api.models.schemas import ModelDetail, VersionDetail
from services.contracts.errors import NotFoundError
from services.contracts.evaluation.fairness import FairnessReport
from services.contracts.versions.report import ModelReport
from services.contracts.versions.version_facts import ModelSummary
from services.registry.gates import check_gates
from services.registry.labels import CHAMPION
from services.reporting.fairness_report import fairness_report
from services.reporting.model_report import model_report
from services.verification.bundle import VersionFiles


def model_list(
    backend: Backend, asset_type: str | None = None, prefix: str = "", champion: bool | None = None
) -> list[ModelSummary]:
    """Models by name: of an asset type, whose names begin with ``prefix``, with a champion or without one."""
    return [
        each for each in backend.registry.models()
        if asset_type in (None, each.asset_type) and each.name.startswith(prefix)
        and champion in (None, each.champion is not None)
    ]


def model_detail(backend: Backend, name: str) -> ModelDetail:
    """Model with its versions, the newest first; ``NotFoundError`` where there is none."""
    found = next((model for model in backend.registry.models() if model.name == name), None)
    if found is None:
        raise NotFoundError(f"no model {name[:60]!r} in the registry")
    return ModelDetail(**found.model_dump(), versions=backend.registry.versions(name))


def version_detail(backend: Backend, name: str, version: str) -> VersionDetail:
    """Version by number or alias, with its label in the registry and the gates of its plan."""
    found = backend.checked.get(name, version)
    label = backend.registry.summary(name, found.version)
    try:
        gates = check_gates(backend.store.runs.get_run(found.run_id).plan.gates, found)
    except NotFoundError:
        gates = None
    return VersionDetail.of(found, label, gates)


def report(backend: Backend, name: str, version: str) -> ModelReport:
    """Report of a version as it was registered; where the registry has none, made from its run and the rounds."""
    found = backend.checked.get(name, version)
    stored = backend.registry.report(found)
    if stored is not None:
        return stored
    run = backend.store.runs.get_run(found.run_id)
    rounds = backend.store.runs.get_rounds(run.run_id)
    return model_report(found, run, rounds, check_gates(run.plan.gates, found))


def version_files(backend: Backend, name: str, version: str) -> VersionFiles:
    """What is handed out of a version so that others can check it, by number or alias."""
    found = backend.checked.get(name, version)
    return VersionFiles(found.to_document(), backend.registry.certificate(found), backend.nats_users.line)


def fairness(backend: Backend, name: str, version: str) -> FairnessReport:
    """Fairness report of a version beside the champion of its model."""
    found = backend.checked.get(name, version)
    try:
        champion = backend.checked.get(name, CHAMPION)
    except NotFoundError:
        champion = None
    try:
        run = backend.store.runs.get_run(found.run_id)
    except NotFoundError:
        run = None
    return fairness_report(found, champion, run)
