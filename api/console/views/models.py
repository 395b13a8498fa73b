"""A model's versions, one of them in full, and how fairly it serves the plants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from api.backend.wiring import Backend
from api.console.views.names import Names
from api.console.views.tuning import TuningPart, tuning_part
from api.console.views.words import certificate_words
from api.models.queries import report
from services.contracts.documents import to_plain
from services.contracts.errors import BallastError, NotFoundError
from services.contracts.evaluation.fairness import FairnessReport, SiteFairness
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.report import ModelReport
from services.contracts.versions.version_facts import ModelSummary, VersionSummary
from services.registry.labels import CHAMPION
from services.reporting.fairness_report import fairness_report, same_measure
from services.reporting.undiagnosed import undiagnosed


@dataclass(frozen=True)
class VersionPage:
    """A version of a model: its certificate in words, its report, and the newest versions, of so many in all."""

    model: ModelSummary
    versions: tuple[VersionSummary, ...]
    in_all: int
    version: ModelVersion
    mlflow_run: str
    report: ModelReport | None
    words: tuple[str, ...]
    note: str

    @property
    def number(self) -> str:
        """Number of the version."""
        return self.version.version

    @property
    def is_champion(self) -> bool:
        """Whether it is what diagnoses are made with."""
        return self.model.champion == self.version.version

    @property
    def tuning(self) -> TuningPart | None:
        """How the version's terms were chosen; None: they are as the plan says."""
        return tuning_part(self.version.tuning, self.version.spec.loss.name)

    @property
    def undiagnosed(self) -> tuple[str, ...]:
        """Of the classes that it never says, a sentence each."""
        return undiagnosed(self.version.asset_type.class_names, self.version.confusion)

    @property
    def parts(self) -> Mapping[str, Any]:
        """Version and report as JSON knows them, for the parts that only some versions have."""
        of_version = {name: value for name, value in to_plain(self.version).items() if name != "weights"}
        return of_version | ({} if self.report is None else dict(to_plain(self.report)))


def version_page(backend: Backend, name: str, wanted: str, *, newest: int, real: bool) -> VersionPage:
    """Page of a version by number or alias, with so many of the newest; ``NotFoundError`` where there is none."""
    model = next((each for each in backend.registry.models() if each.name == name), None)
    if model is None:
        raise NotFoundError(f"no model {name[:60]!r} in the registry")
    number = wanted if wanted.isdecimal() else backend.checked.resolve(name, wanted)
    version = backend.versions.get(name, number)
    found, note = _report(backend, version)
    if not real:
        known = [site.site_id for site in backend.store.sites.list_sites()]
        version = backend.pseudonyms.applied(name, version, known)
        found = found if found is None else backend.pseudonyms.applied(name, found, known)
    return VersionPage(
        model, backend.registry.versions(name, newest), len(backend.store.model_versions.numbers(name)), version,
        backend.registry.mlflow_run_id(name, number), found, tuple(certificate_words(version)), note,
    )


def _report(backend: Backend, version: ModelVersion) -> tuple[ModelReport | None, str]:
    try:
        return backend.versions.report(version) or report(backend, version.name, version.version), ""
    except BallastError as error:
        return None, f"The version's report cannot be read: {error}"


@dataclass(frozen=True)
class Served:
    """How a plant is served: by this version, and by the champion (None: there is none, or this is it).

    ``comparable``: the losses of both are in one measure.
    """

    here: SiteFairness
    champion: SiteFairness | None
    comparable: bool = True

    @property
    def change(self) -> float | None:
        """Held-out loss here less that of the champion: what a promotion would change; None where nothing tells."""
        if not self.comparable or self.champion is None or self.champion.loss is None or self.here.loss is None:
            return None
        return self.here.loss - self.champion.loss


@dataclass(frozen=True)
class FairnessPage:
    """Fairness of a version, and the plants from the worst served to the best."""

    report: FairnessReport
    plants: tuple[Served, ...]


def fairness(backend: Backend, name: str, wanted: str, *, real: bool) -> FairnessPage:
    """Fairness of a version by number or alias, beside the champion's; ``NotFoundError`` where there is none."""
    number = wanted if wanted.isdecimal() else backend.checked.resolve(name, wanted)
    version = backend.versions.get(name, number)
    try:
        champion = backend.versions.get(name, backend.checked.resolve(name, CHAMPION))
    except NotFoundError:
        champion = None
    try:
        run = backend.store.runs.get_run(version.run_id)
    except NotFoundError:
        run = None
    made = fairness_report(version, champion, run)
    other = champion if champion is not None and champion.version != number else None
    theirs = {} if other is None else {site.site_id: SiteFairness.of_record(site) for site in other.sites}
    names = Names(backend, name, real, ())
    same = other is None or same_measure(version, other, "loss")
    plants = [Served(_named(site, names), _named(theirs.get(site.site_id), names), same) for site in made.sites]
    plants.sort(key=lambda plant: (-_loss(plant.here), plant.here.site_id))
    return FairnessPage(backend.named(name, made, real=real), tuple(plants))


def _named(site: SiteFairness | None, names: Names) -> Any:
    return None if site is None else site.model_copy(update={"site_id": names.site(site.site_id)})


def _loss(site: SiteFairness) -> float:
    known = site.loss if site.loss is not None else site.worst_case_risk
    return float("-inf") if known is None else known

