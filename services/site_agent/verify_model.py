"""``ballast-site verify``: a version proven again at the plant, and its own part in it held against its own rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from services.contracts.errors import InvalidInputError
from services.contracts.messages import RadiusRule, TrainingSpec
from services.contracts.model_version import ModelVersion, SiteScore
from services.site_agent.local_predictor import read_document
from services.site_agent.local_round import own_risks
from services.site_agent.settings import SiteSettings
from services.verification.proof import NotProvenError
from services.verification.version import CERTIFICATE, verify_version

SAME_RISK = 1e-6
"""Relative: above what two machines make of the same rows in float64."""


def verify_model(path: Path, certificate: Path | None, settings: SiteSettings, key: str | None) -> list[str]:
    """What was checked of a version's file, a line each; ``certificate`` None: the file beside it.

    Raises
    ------
    NoCertificateError, SignatureError, NotProvenError
        As ``services.verification.version.verify_version``; also where the plant's own rows have another risk.
    InvalidInputError
        A file cannot be read, or the plant's data do not fit.
    """
    document = read_document(path)
    _, _, lines = verify_version(document, _read(certificate or path.with_name(CERTIFICATE)), key)
    return [*lines, _own_part(ModelVersion.from_document(document), settings)]


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidInputError(f"the certificate file {path} cannot be read: {error.strerror}") from None


def _own_part(version: ModelVersion, settings: SiteSettings) -> str:
    """The plant's own worst-case risk on its own rows, if it is what the version says."""
    own = next((site for site in version.sites if site.site_id == settings.site_id), None)
    if own is None:
        return f"not checked: the own risk, for {settings.site_id} has no part in this version"
    found = float(np.sum(own_risks(settings, version.asset_type, _own_spec(version, own), version.weights)))
    if own.worst_case_risk is None:
        return f"not checked: the own risk is {found:.9g} on these rows; the version says nothing of it"
    if not abs(found - own.worst_case_risk) <= SAME_RISK * max(found, own.worst_case_risk):
        raise NotProvenError(
            f"the worst-case risk of {settings.site_id} is {found:.9g} on its own rows, the version says "
            f"{own.worst_case_risk:.9g}; either the rows have changed since the run, or the figure is not this plant's"
        )
    return f"checked: the own worst-case risk, {found:.9g} on the own rows within radius {own.radius:.6g}"


def _own_spec(version: ModelVersion, own: SiteScore) -> TrainingSpec:
    changes: dict[str, object] = {"radius": RadiusRule(rule="fixed", value=own.radius)}
    if own.label_flip_cost is not None:
        changes["label_flip_cost"] = own.label_flip_cost
    return version.spec.model_copy(update=changes)

