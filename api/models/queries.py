"""Models and versions as both faces show them."""

from __future__ import annotations

from api.schemas import ModelDetail, VersionDetail
from api.wiring import Backend
from services.contracts.errors import NotFoundError
from services.contracts.fairness import FairnessReport
from services.contracts.model_version import ModelVersion
from services.contracts.report import ModelReport
from services.registry.gates import check_gates
from services.registry.labels import CHAMPION
from services.reporting.fairness_report import fairness_report
from services.reporting.model_report import model_report


def model_detail(backend: Backend, name: str) -> ModelDetail:
    """Model with its versions, the newest first."""
    found = next((model for model in backend.registry.models() if model.name == name), None)
    if found is None:
        raise NotFoundError(f"no model {name[:60]!r} in the registry")
    return ModelDetail(**found.model_dump(), versions=backend.registry.versions(name))


def version_detail(backend: Backend, name: str, version: str) -> VersionDetail:
    """Version by number or alias, with its label in the registry and the gates of its plan."""
    found = backend.registry.get(name, version)
    label = next(item for item in backend.registry.versions(name) if item.version == found.version)
    try:
        gates = check_gates(backend.store.runs.get_run(found.run_id).plan.gates, found)
    except NotFoundError:
        gates = None
    return VersionDetail.of(found, label, gates)


def report_of(backend: Backend, version: ModelVersion) -> ModelReport:
    """Report of a version, made from its run and the run's rounds."""
    run = backend.store.runs.get_run(version.run_id)
    rounds = backend.store.runs.get_rounds(run.run_id)
    return model_report(version, run, rounds, check_gates(run.plan.gates, version))


def fairness_of(backend: Backend, version: ModelVersion) -> FairnessReport:
    """Fairness report of a version beside the champion of its model."""
    try:
        champion = backend.registry.get(version.name, CHAMPION)
    except NotFoundError:
        champion = None
    return fairness_report(version, champion)


def known_sites(backend: Backend) -> tuple[str, ...]:
    """Every site that was ever enrolled: a reason may name one."""
    return tuple(site.site_id for site in backend.store.sites.list_sites())
