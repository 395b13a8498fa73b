"""Bounds held to the rows themselves, which the simulation alone may see: ``lower <= risk of the model <= upper``.

Where planes are coupled, of those before it; and what the version says of the coupling is held to the rows as well.

With the risk of a run's model computed from all rows of its members as they were in that run. A cut of rows that a
plant does not have any more, or an answer that was counted for another question, does not stay below that risk for
long.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from models.basics import FloatArray
from models.methods.catalogue import get_method
from models.multiclass import predict_scores
from models.tuning.coupling import RIDGE
from services.contracts.errors import BallastError
from services.contracts.history.run import Run, SiteTermsRecord
from services.contracts.versions.model_version import ModelVersion
from services.coordinator.run_state.terms import site_spec
from services.site_agent.answers.local_solve import head_risks, lifted, site_problems
from services.site_agent.vault.dataset import Part
from services.verification.version import CERTIFICATE, verify_version
from tests.simulation.groups import differ

if TYPE_CHECKING:
    from tests.simulation.works import Works

ROUNDING, LOG_ROUNDING = 1e-6, 1e-5


def untrue_bounds(works: Works, run: Run) -> Iterator[str]:
    """What the rows refute of a run; bounds with a liar in them speak of nothing, and noisy ones hold mostly."""
    plan = run.plan
    yield from reused_of_other_rows(works, run)
    speaks = not works.scenario.liar and plan.noise is None and get_method(plan.method).is_robust
    if run.status != "completed" or plan.tunes_only or not speaks:
        return
    version = next(each for each in works.registry.versions[plan.name] if each.run_id == run.run_id)
    # With a plant that never answered in the rounds that there were nothing is proven from above, and no file is due.
    bounded = math.isfinite(version.objective) and version.lower_bound > ROUNDING
    if bounded and not version.certificate_sha256:
        yield f"run {run.run_id[:8]} ({works.scenario.mode}, {plan.method}) leaves no file that proves its bounds"
    rows = [(site, rows_of(works, run, site)) for site in run.members]
    yield from untrue_coupling(version, rows)
    risk = risk_of(works, run, planes_before(version), rows)
    last = works.store.runs.get_rounds(run.run_id)[-1]
    about = f"run {run.run_id[:8]} ({works.scenario.mode}, {plan.method})"
    slack = ROUNDING * (1.0 + abs(risk))
    if last.lower > risk + slack:
        yield f"{about} proves {last.lower!r} from below, its model's risk is {risk!r}"
    if last.fresh_weight > 1.0 - ROUNDING and risk > last.upper + slack:
        yield f"{about} says at most {last.upper!r}, its model's risk is {risk!r}"


def unproven_versions(works: Works) -> Iterator[str]:
    """Versions with a certificate file that does not prove what they say, or is not theirs, to one who has both."""
    for version in works.registry.versions.get(works.scenario.plan.name, []):
        if not version.certificate_sha256:
            continue
        data = works.registry.files[version.name, str(version.version)].get(CERTIFICATE)
        try:
            proof = verify_version(version.to_document(), data, version.signed_by)[1]
        except BallastError as error:
            yield f"certificates: version {version.version} ({works.scenario.mode}, {version.method}): {error}"
            continue
        robust = get_method(version.method).is_robust and version.noise is None
        if robust and not math.isclose(version.objective, proof.upper, rel_tol=ROUNDING, abs_tol=ROUNDING):
            yield f"certificates: version {version.version} says {version.objective}, its file {proof.upper}"


def reused_of_other_rows(works: Works, run: Run) -> Iterator[str]:
    """Plants whose cuts of an earlier run count although their rows are others since."""
    if run.start is None or run.start.after is None:
        return
    now, then = works.rows_of[run.run_id], works.rows_of[run.start.after]
    groups = {each.name: each.sites for each in run.start.cohorts}
    for name in works.invariants.steps.reused.get(run.run_id, ()):
        for site in groups.get(name, (name,)):
            if site in now and differ(works.plants[site], now[site], then[site]):
                yield f"run {run.run_id[:8]} keeps cuts of {name}, and the rows of {site} are others"


def rows_of(works: Works, run: Run, site: SiteTermsRecord) -> Part:
    """The training rows that a site had when it joined a run."""
    plant = works.plants[site.site_id]
    return plant.seen(works.rows_of[run.run_id][site.site_id]).train


def planes_before(version: ModelVersion) -> FloatArray:
    """Planes (K, P + 1) of which the bounds of a version speak: those before their coupling, where they are coupled."""
    if version.coupling is None:
        return version.weights
    matrix, offsets = version.coupling.array[:, :-1], version.coupling.array[:, -1]
    shifted = version.weights.copy()
    shifted[:, -1] -= offsets
    return np.asarray(np.linalg.solve(matrix, shifted))


def untrue_coupling(version: ModelVersion, rows: Sequence[tuple[SiteTermsRecord, Part]]) -> Iterator[str]:
    """What the rows refute of what a version says of its coupling: log losses before and now, and what is least.

    A plant whose guard lets another cut leave tells a risk at or above its own (``models.methods.guard``), so the log
    losses said are at most too high.
    """
    coupling = version.coupling
    if coupling is None:
        return
    away = coupling.array - np.hstack([np.eye(len(version.weights)), np.zeros((len(version.weights), 1))])
    ridge = RIDGE / 2.0 * float((away**2).sum())
    for name, planes, more, said in (
        ("before", planes_before(version), 0.0, coupling.before), ("now", version.weights, ridge, coupling.objective),
    ):
        found = more + sum(site.weight * log_loss_of(version, planes, train) for site, train in rows)
        if found - said > LOG_ROUNDING * (1.0 + found):
            yield f"run {version.run_id[:8]} says that its coupling has a log loss of {said!r} {name}, it is {found!r}"
    if not coupling.at_least <= coupling.objective <= coupling.before:
        yield f"run {version.run_id[:8]} has a coupling of {coupling.words}"


def log_loss_of(version: ModelVersion, planes: FloatArray, train: Part) -> float:
    """Mean log loss of the softmax of the scores of planes."""
    scores = predict_scores(planes, lifted(version.spec, train.features))
    own = scores[np.arange(len(scores)), train.classes]
    return float(np.mean(np.logaddexp.reduce(scores, axis=1) - own))


def risk_of(
    works: Works, run: Run, planes: FloatArray, rows: Sequence[tuple[SiteTermsRecord, Part]]
) -> float:
    """Worst-case risk of planes over the members of a run."""
    total = 0.0
    for site, train in rows:
        spec = site_spec(run.plan, works.asset_type, site.site_id, site.radius)
        problems = site_problems(spec, lifted(spec, train.features), train.outcomes(spec.loss.task), works.asset_type)
        total += site.weight * float(head_risks(planes, problems).sum())
    return total
