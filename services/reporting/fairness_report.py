"""The fairness report of a model version, from the scalars that its sites sent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from models.fairness.indices import (
    atkinson,
    best_share,
    gini,
    lorenz_curve,
    palma,
    transformed_lorenz_curve,
    twenty_twenty,
    worst_share,
)
from models.methods.catalogue import METHODS
from services.contracts.evaluation.fairness import (
    BASIS_NAMES,
    FEW_SITES,
    Basis,
    FairnessIndices,
    FairnessReport,
    GeneralisationBound,
    IndexChange,
    LorenzPoint,
    SiteFairness,
    figures,
)
from services.contracts.history.run import Run
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.reporting.generalisation import lifts_tried, version_bound

BASES: tuple[Basis, ...] = ("loss", "worst_case_risk")
COMPARED = (
    "relative_unfairness", "palma", "gini", "atkinson", "atkinson_infinite", "worst_share", "worst_site", "mean",
)
"""Indices of which less is better."""
IN_LOSS = ("worst_share", "worst_site", "mean")
"""Those that are as large as losses are; the others are ratios, which no unit shows in."""

ROUNDING = 1e-12  # relative; sums of some hundred float64 differ by less


def fairness_report(
    version: ModelVersion, champion: ModelVersion | None = None, run: Run | None = None
) -> FairnessReport:
    """Report of a version beside the champion (None: there is none). Pure: the same input gives the same report.

    With its ``run`` the bound on new data (RF Theorem 4) stands there too.
    """
    if champion is not None and champion.version == version.version:
        champion = None
    sites = tuple(SiteFairness.of_record(site) for site in sorted(version.sites, key=lambda site: site.site_id))
    here = _all_indices(sites)
    there = _all_indices(champion.sites) if champion is not None else ()
    return FairnessReport.of_record(
        version,
        unit=version.asset_type.target.unit if version.asset_type.target and version.task == "regression" else None,
        sites=sites,
        indices=here,
        champion_version=champion.version if champion is not None else None,
        champion_indices=there,
        changes=tuple(_changes(version, champion, here, there)),
        generalisation=_bound(version, run),
        notes=tuple(_notes(version, champion, sites, here)),
    )


def _bound(version: ModelVersion, run: Run | None) -> GeneralisationBound | None:
    if run is None:
        return None
    parameters = {**METHODS[run.plan.method].parameters, **run.plan.parameters} if run.plan.method in METHODS else {}
    rows, weights = [site.n_samples for site in run.members], [site.weight for site in run.members]
    return version_bound(version, rows, parameters, lifts_tried(run.plan), weights)


def _all_indices(sites: Sequence[SiteFairness]) -> tuple[FairnessIndices, ...]:
    return tuple(found for found in (_indices(sites, basis) for basis in BASES) if found is not None)


def _indices(sites: Sequence[SiteFairness], basis: Basis) -> FairnessIndices | None:
    """Indices over the sites whose figure is known; None where there is none."""
    known = {site_id: value for site_id, value in figures(sites, basis).items() if value is not None}
    if not known:
        return None
    values = list(known.values())
    weights = [site.weight for site in sites if site.site_id in known]
    (x, curve), (_, transformed) = lorenz_curve(values), transformed_lorenz_curve(values)
    total = math.fsum(weights)
    weighted = math.fsum(w * v for w, v in zip(weights, values, strict=True)) / total if total > 0 else 0.0
    return FairnessIndices(
        basis=basis,
        n_sites=len(values),
        missing=tuple(site.site_id for site in sites if site.site_id not in known),
        relative_unfairness=twenty_twenty(values),
        palma=palma(values),
        gini=gini(values),
        atkinson=atkinson(values, 1.0),
        atkinson_infinite=atkinson(values, math.inf),
        worst_share=worst_share(values),
        best_share=best_share(values),
        worst_site=max(values),
        mean=weighted,
        lorenz=tuple(
            LorenzPoint(sites=float(a), losses=float(b), transformed=float(c))
            for a, b, c in zip(x, curve, transformed, strict=True)
        ),
    )


def same_measure(version: ModelVersion, champion: ModelVersion, basis: Basis) -> bool:
    """Whether a figure of one version says more or less than that of another: both are of one loss, and of one ball.

    Held-out losses are summed over the planes of a loss, so they hang on how several classes are trained, too.
    """
    if _other_losses(version, champion):
        return False
    return basis == "loss" or not _other_balls(version.spec, champion.spec)


def _other_losses(version: ModelVersion, champion: ModelVersion) -> str | None:
    """In what the champion's losses are other ones than these; None where they are the same."""
    if champion.spec.loss != version.spec.loss:
        return "another loss"
    if champion.asset_type.class_names != version.asset_type.class_names:
        return "other classes"
    return None if champion.spec.multi_class == version.spec.multi_class else "another multi_class"


def _other_balls(ours: TrainingSpec, theirs: TrainingSpec) -> list[str]:
    """Terms that say over which distributions a risk is the worst, and differ; a spline changes no ball."""
    terms = ("radius", "label_flip_cost", "transport_norm", "support")
    found = [name.replace("_", " ") for name in terms if getattr(ours, name) != getattr(theirs, name)]
    return found + ["lift"] * (ours.lift != theirs.lift and bool(ours.ball_words or theirs.ball_words))


def _changes(
    version: ModelVersion,
    champion: ModelVersion | None,
    here: tuple[FairnessIndices, ...],
    there: tuple[FairnessIndices, ...],
) -> Iterable[IndexChange]:
    champions = {indices.basis: indices for indices in there}
    for indices in here:
        if champion is not None and indices.basis in champions:
            same = same_measure(version, champion, indices.basis)
            for name in COMPARED:
                if name in IN_LOSS and not same:
                    continue
                ours, theirs = getattr(indices, name), getattr(champions[indices.basis], name)
                better = ours < theirs and not math.isclose(ours, theirs, rel_tol=ROUNDING)
                yield IndexChange(index=name, basis=indices.basis, here=ours, champion=theirs, better=better)


def _notes(
    version: ModelVersion,
    champion: ModelVersion | None,
    sites: tuple[SiteFairness, ...],
    indices: tuple[FairnessIndices, ...],
) -> Iterable[str]:
    for count in sorted({found.n_sites for found in indices if found.n_sites < FEW_SITES}):
        yield _few_sites(count)
    for found in indices:
        what = BASIS_NAMES[found.basis]
        if found.missing:
            yield f"{len(found.missing)} of {len(sites)} sites have no {what} and are left out of its indices."
    if not indices:
        yield "No site sent a figure, so there is nothing to compare."
    if champion is not None and (other := _other_losses(version, champion)):
        yield f"The champion was trained with {other}: its losses and risks are in another measure than these."
    elif champion is not None and (terms := ", ".join(_other_balls(version.spec, champion.spec))):
        yield f"The champion's worst-case risks are over other balls ({terms}): they are in another measure than these."
    if champion is not None and {site.site_id for site in champion.sites} != {site.site_id for site in sites}:
        yield "The champion was judged by other sites, so part of a difference may be theirs."


def _few_sites(count: int) -> str:
    if count == 1:
        return "There are figures of one site only: every index is that site's own."
    return (
        f"There are figures of {count} sites only. With fewer than {FEW_SITES} sites the worst and the best 20 % are "
        "single sites, and the points of the Lorenz curve with the mean give every site's figure: whoever knows one "
        "site's figure can tell which it is. Pseudonyms hide which plant a figure belongs to, not the figure."
    )
