"""``ballast-site verify``: a version proven again at the plant, and its own part in it held against its own rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from models.basics import FloatArray
from models.methods.protocol import WORST_CASE
from models.worst_case.joint_risk import joint_weights
from services.contracts.problems.all_scores import joint_loss, objective_of
from services.contracts.problems.training_spec import RadiusRule, TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.version_facts import SiteScore
from services.site_agent.limits.row_reach import row_reach
from services.site_agent.limits.told_steps import FINEST, MOST_STEPS
from services.site_agent.own_use.own_rows import OwnRows
from services.site_agent.settings import SiteSettings
from services.verification.bounds import heights
from services.verification.bundle import read_files
from services.verification.certificate_file import CertificateFile, Head
from services.verification.proof import NotProvenError
from services.verification.version import verify_version

POINTS = 8
"""Points that are drawn beside the weights and zero."""
SAME_RISK = 1e-6
"""Relative: above what two machines make of the same rows in float64."""
_TOLD_ABOVE = 1.001e-3
"""Relative: a run on sums is told the risk to four digits, rounded up, in no finer steps than ``told_steps`` says."""


def verify_model(path: Path, certificate: Path | None, settings: SiteSettings, key: str | None) -> list[str]:
    """What was checked of a version's files, a line each: ``path`` is a zip file, a folder, or the document.

    ``certificate``: the certificate file, where it is not beside the document under its own name.

    Raises
    ------
    NoCertificateError, SignatureError, NotProvenError
        As ``services.verification.version.verify_version``; also where the plant's own rows have another risk.
    InvalidInputError
        A file cannot be read, or the plant's data do not fit.
    """
    files = read_files(path, certificate)
    file, _, lines = verify_version(files.document, files.certificate, key, files.line)
    version = ModelVersion.from_document(files.document)
    own = next((site for site in version.sites if site.site_id == settings.site_id), None)
    if own is None:
        return [*lines, f"not checked: the own risk and cuts, for {settings.site_id} has no part in this version"]
    rows = OwnRows(settings, version.asset_type, version.spec.loss.task)
    return [*lines, _own_part(version, own, rows), _own_cuts(file, version, own, rows)]


def _own_part(version: ModelVersion, own: SiteScore, rows: OwnRows) -> str:
    """The plant's own worst-case risk on its own rows, if it is what the version says."""
    if not version.spec.loss.has_ball:
        return "not checked: the own risk; the version was trained without a ball, and states no worst-case risk"
    found = float(np.sum(rows.risks(_own_spec(version, own), [version.weights])))
    if own.worst_case_risk is None:
        return f"not checked: the own risk is {found:.9g} on these rows; the version says nothing of it"
    largest = max(found, own.worst_case_risk)
    above = _TOLD_ABOVE * largest + _told_above(version, len(rows))
    if not -SAME_RISK * largest <= own.worst_case_risk - found <= above:
        raise NotProvenError(
            f"the worst-case risk of {own.site_id} is {found:.9g} on its own rows, the version says "
            f"{own.worst_case_risk:.9g}; either the rows have changed since the run, or the figure is not this plant's"
        )
    return f"checked: the own worst-case risk, {found:.9g} on the own rows within radius {own.radius:.6g}"


def _told_above(version: ModelVersion, n_rows: int) -> float:
    """How far above the exact one a run on sums is told the risk at most for want of finer steps, the heads summed."""
    reach = row_reach(version.weights, version.spec, version.asset_type, objective_of(version.spec, version.asset_type))
    return MOST_STEPS * FINEST * float(reach.risk.sum()) / n_rows


def _own_cuts(certificate: CertificateFile, version: ModelVersion, own: SiteScore, rows: OwnRows) -> str:
    """Whether the plant's cuts lie below its own risk at the weights, at zero and at drawn points.

    And whether its risk at the weights, of which the upper bound is proven, is no lower than that.
    """
    if version.objective_name != WORST_CASE:
        return "not checked: the own cuts; there are none of the worst-case risk in this version"
    if certificate.members:
        return "not checked: the own cuts; the server saw sums over cohorts alone, and so does this file"
    place, random = certificate.site_ids.index(own.site_id), np.random.default_rng(0)
    stretch = np.concatenate([[1.0, 0.0], random.uniform(0.0, 2.0, POINTS)])
    noise = random.normal(size=(len(stretch), *version.weights.shape)) * np.abs(version.weights).max()
    noise[:2] = 0.0
    points = stretch[:, None, None] * version.weights + noise
    if not version.spec.fit_intercept:
        points[:, :, -1] = 0.0
    joint = joint_loss(version.spec, version.asset_type)
    _check_risks(certificate, place, own, rows.risks(_own_spec(version, own), [
        version.weights if joint is not None else _planes(certificate, version.spec.fit_intercept)
    ])[0])
    found = rows.risks(_own_spec(version, own), list(points))
    for weights, risks in zip(points, found, strict=True):
        planes = weights if joint is None else joint_weights(weights, version.spec.fit_intercept)[np.newaxis]
        for head, plane, risk in zip(certificate.heads, planes, risks, strict=True):
            if highest_cut(certificate, head, place, plane[: head.weights.size]) > risk + SAME_RISK * (1.0 + risk):
                raise NotProvenError(
                    f"a cut that {own.site_id} is said to have answered lies above its risk on its own rows; "
                    "either the rows have changed since the run, or the cut is not this plant's"
                )
    return f"checked: the own cuts lie below the own risk at {len(stretch)} weights, the version's among them"


def _planes(certificate: CertificateFile, fit_intercept: bool) -> FloatArray:
    """Planes (K, P + 1) of the heads, before a coupling of them."""
    return np.stack([np.append(head.weights, [] if fit_intercept else [0.0]) for head in certificate.heads])


def _check_risks(certificate: CertificateFile, place: int, own: SiteScore, found: FloatArray) -> None:
    """Refuse a file in which the plant's risk is below ``found`` (K,) at the weights; NaN says that it was away."""
    for head, risk in zip(certificate.heads, found.tolist(), strict=True):
        if (said := float(head.risks[place])) < risk - SAME_RISK * (1.0 + risk):
            raise NotProvenError(
                f"{own.site_id} is said to have answered a risk of {said:.9g} at the certificate's weights, which is "
                f"{risk:.9g} on its own rows; either the rows have changed since the run, or it is not this plant's"
            )


def highest_cut(certificate: CertificateFile, head: Head, place: int, weights: FloatArray) -> float:
    """Least that the cuts of a site, by its place, say of its risk at weights (D,)."""
    at = replace(head, weights=weights)
    cuts, _ = heights(certificate, at)
    return float(cuts.low[head.site == place].max(initial=0.0))


def _own_spec(version: ModelVersion, own: SiteScore) -> TrainingSpec:
    changes: dict[str, object] = {"radius": RadiusRule(rule="fixed", value=own.radius)}
    if own.label_flip_cost is not None:
        changes["label_flip_cost"] = own.label_flip_cost
    return version.spec.model_copy(update=changes)

