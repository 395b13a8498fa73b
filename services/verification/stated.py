"""What a version states of its problem beside the sites and weights, and what its certificate holds of it: the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from services.contracts.problems.loss import LossSpec
from services.verification.certificate_file import CertificateFile

OF_THE_WORST_SITE: Final = frozenset({"drfa-exact"})
"""Methods whose bounds are of every mixture of the sites, whatever ball the version states."""
STEEPEST: Final = 1e100
"""What stands in a certificate for the constant of a loss that has none."""
_WHOLE_SIMPLEX: Final = ("l1", 2.0)
"""No two mixtures are farther apart."""


def is_joint(document: Mapping[str, Any]) -> bool:
    """Whether all classes of a version are one problem: one head of all planes."""
    return bool(document["spec"].get("multi_class") == "crammer_singer" and len(document["weights"]) > 1)


def has_intercept(document: Mapping[str, Any]) -> bool:
    """Whether a certificate of this version takes the last weight of a head for an intercept, which no norm meets."""
    return bool(document["spec"].get("fit_intercept", True)) and not is_joint(document)


def steepness_said(document: Mapping[str, Any]) -> float:
    """Lipschitz constant of a version's loss, as a certificate holds it: what its cuts may count the norm by."""
    said = document["spec"].get("loss")  # hinge where none is said: so it was when there was no other
    return float(min(LossSpec.model_validate("hinge" if said is None else said).loss.lipschitz, STEEPEST))


def counts_norm(certificate: CertificateFile) -> bool:
    """Whether a cut counts the norm of the weights, and with it bounds the risk of its site by it everywhere."""
    return any(bool((head.norm_weight > 0).any()) for head in certificate.heads)


def may_count_norm(document: Mapping[str, Any]) -> bool:
    """Whether cuts of a version may: in a box or a polytope no row can be moved for ever, and none does."""
    return bool(document["spec"].get("support", "unbounded") == "unbounded")


def ball_of(certificate: CertificateFile) -> tuple[str, float]:
    """Norm and radius of the ball over the sites of which a certificate proves its bounds."""
    return _ball(certificate.mixture_norm, certificate.mixture_radius)


def ball_said(document: Mapping[str, Any]) -> tuple[str, float]:
    """Norm and radius of the ball over the sites of which the bounds of a version are to be proven."""
    if document.get("method") in OF_THE_WORST_SITE:
        return _WHOLE_SIMPLEX
    said = document.get("mixture") or {"norm": "", "radius": 0.0}  # before there was one, the weights were trusted
    return _ball(str(said["norm"]), float(said["radius"]))


def _ball(norm: str, radius: float) -> tuple[str, float]:
    """Of a ball without a radius the norm says nothing."""
    return (norm if radius > 0 else "", float(radius))


def noise_of(certificate: CertificateFile) -> tuple[float, float] | None:
    """With which probability a certificate's bounds hold, and of which weights; None without noise."""
    return None if certificate.confidence == 1 else (certificate.confidence, certificate.within)


def noise_said(document: Mapping[str, Any]) -> tuple[float, float] | None:
    """The same of a version."""
    said = document.get("noise")
    return None if said is None else (float(said["confidence"]), float(said["within"]))
