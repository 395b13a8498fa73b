"""Whether a certificate's claims follow from what it holds: bounds, gap, and that it belongs to a version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from services.contracts.errors import ConflictError
from services.verification.bounds import floors, heights, lower_bound, upper_bound
from services.verification.certificate_file import CertificateFile, Head
from services.verification.charges import REACH, reach_around
from services.verification.enclosures import Floats, sums
from services.verification.planes import weights_of
from services.verification.stated import (
    ball_of,
    ball_said,
    counts_norm,
    has_intercept,
    may_count_norm,
    noise_of,
    noise_said,
    steepness_said,
)

ACCURACY = 1e-9
"""Relative to the upper bound: to this the figures of a run, worked out in float64, are those that are proven."""
_NOTHING = 1e-300
"""A risk up to here is 0: enclosed arithmetic leaves the least of all numbers in place of sums of zeros."""
_TRUE_CUT = 1e-6
"""Relative to the size of its terms, a cut may lie above the risk: what a plant's solver leaves of an exact cut."""
_WEIGHT_SUM = 1e-9
"""By how much the sites' weights may miss the sum 1, and a cohort's scalars those of its plants, relative to them."""


class NotProvenError(ConflictError):
    """A claim does not follow."""

    code = "not_proven"


class RefutedError(NotProvenError):
    """It cannot follow: no rows have these cuts and risks, so somebody told what is not true."""


@dataclass(frozen=True)
class Proof:
    """The bounds that follow, summed over the heads, and in plain words what was checked and what was not.

    ``condition``: where the sums had noise, with which probability the bounds hold, and of which weights.
    """

    upper: float
    lower: float
    gap: float
    checked: tuple[str, ...]
    not_checked: tuple[str, ...]
    condition: str = ""


def verify(certificate: CertificateFile) -> Proof:
    """Prove the claims of a certificate from its own numbers; :class:`NotProvenError` with the first that fails."""
    _check_problem(certificate)
    proven = [_prove(certificate, head, k) for k, head in enumerate(certificate.heads)]
    ones = np.ones(len(proven))
    upper = float(sums(ones, np.array([high for high, _, _ in proven])).high)
    lower = max(min(float(sums(ones, np.array([low for _, low, _ in proven])).low), upper), 0.0)
    gap = (upper - lower) / upper if upper > _NOTHING else 0.0
    room = ACCURACY * upper + _NOTHING
    if not certificate.upper >= upper - room:
        raise NotProvenError(f"the upper bound is said to be {certificate.upper:.9g}; what is proven is {upper:.9g}")
    if not certificate.lower <= lower + room:
        raise NotProvenError(f"the lower bound is said to be {certificate.lower:.9g}; what is proven is {lower:.9g}")
    if not certificate.gap >= gap - 2 * ACCURACY:
        raise NotProvenError(f"the relative gap is said to be {certificate.gap:.9g}; what is proven is {gap:.9g}")
    absent = sorted({
        site for head in certificate.heads
        for site, risk in zip(certificate.site_ids, head.risks, strict=True) if np.isnan(risk)
    })
    not_checked = _not_checked(certificate)
    if absent:
        not_checked += (f"the risk of {', '.join(absent)} at the weights: absent at the end, it counts by its cuts",)
    within = max((near for _, _, near in proven if np.isfinite(near)), default=np.inf)
    return Proof(upper, lower, gap, _checked(certificate, within), not_checked, _condition(certificate))


def _condition(certificate: CertificateFile) -> str:
    if certificate.confidence == 1:
        return ""
    return (
        f"the sums had noise: both bounds hold with probability {certificate.confidence:g}, the lower one of weights "
        f"with a Euclidean norm of at most {certificate.within:g}"
    )


def _checked(certificate: CertificateFile, near: float) -> tuple[str, ...]:
    n_cuts, n_sites = sum(head.site.size for head in certificate.heads), len(certificate.site_ids)
    sites, own, within = f"{n_sites} sites", "its site", ""
    if np.isfinite(near):
        within = f"; for weights of at most {near:.0f} in absolute value: "
        within += "no row has a say in some, and cuts are rounded"
    if certificate.members:
        cohorts, own = "1 cohort" if n_sites == 1 else f"{n_sites} cohorts", "its cohort"
        sites = f"{cohorts}, sums over {len(certificate.plants)} plants,"
        within = f"; for weights of at most {REACH:g} in absolute value, as far as rounded sums are cuts"
    return (
        f"upper bound: the worst mixture of the risks of {sites} at the weights",
        f"lower bound: {n_cuts} cuts and their multipliers, by weak duality, in interval arithmetic{within}",
        f"no cut lies above the risk that {own} answered at the weights",
    )


def _not_checked(certificate: CertificateFile) -> tuple[str, ...]:
    """What the file does not prove, and who signed what."""
    if certificate.members:
        return (
            "that the sums are true of the plants' rows: a plant's own part is in a sum, and nobody can tell it apart",
            "that the plants gave these sums: each signs its masked words, which say nothing without the others'; "
            "the OEM's signature covers the file",
        )
    return (
        "that the sites' risks and cuts are true of their rows: each plant can check its own (ballast-site verify)",
        "that the sites gave these answers: their signatures stay with the run, the OEM's covers the file",
    )


def _check_problem(certificate: CertificateFile) -> None:
    weights = certificate.site_weights
    if (weights < 0).any() or abs(float(weights.sum()) - 1.0) > _WEIGHT_SUM:
        raise NotProvenError("the sites' weights must be at or above 0 and sum to 1")
    if (certificate.radii < 0).any() or not (certificate.label_flip_costs > 0).all():
        raise NotProvenError("a site's radius must be at or above 0, and what a label flip costs above 0")
    if certificate.members and max(float(np.abs(head.weights).max()) for head in certificate.heads) > REACH:
        raise NotProvenError(f"a weight is above {REACH:g} in absolute value, where sums over cohorts prove nothing")
    limits = certificate.radii * certificate.lipschitz
    for head in certificate.heads:
        steep = floors(certificate, head) > limits + _TRUE_CUT * np.maximum(1.0, limits)
        if steep.any():
            site = certificate.site_ids[int(np.argmax(steep))]
            raise RefutedError(f"a cut of {site} counts the norm more than the radius of the site allows")


def proven_lower(certificate: CertificateFile) -> tuple[float, ...]:
    """What is proven of the lower bound of each head, where that is no more than it is said to be.

    :class:`RefutedError` where no rows have the cuts and risks.
    """
    said = []
    for k, head in enumerate(certificate.heads):
        upper, highest = _at_the_weights(certificate, head, k)
        said.append(min(_below(certificate, head, upper, highest)[0], head.lower))
    return tuple(said)


def _prove(certificate: CertificateFile, head: Head, number: int) -> tuple[float, float, float]:
    """Bounds of one head, and the largest absolute weight of those of which single answers prove the lower one.

    :class:`NotProvenError` where they are not the ones that it is said to have.
    """
    upper, highest = _at_the_weights(certificate, head, number)
    name = f"head {number + 1}"
    if not head.upper >= upper - ACCURACY * upper - _NOTHING:
        raise NotProvenError(f"{name}: upper bound said to be {head.upper:.9g}; what is proven is {upper:.9g}")
    lower, near = _below(certificate, head, upper, highest)
    if not head.lower <= lower + ACCURACY * upper:
        raise NotProvenError(f"{name}: lower bound said to be {head.lower:.9g}; what is proven is {lower:.9g}")
    return upper, lower, near


def _at_the_weights(certificate: CertificateFile, head: Head, number: int) -> tuple[float, float]:
    """What the risk of the worst mixture is at most at the weights; and with each site's at least what its cuts say."""
    known = np.where(np.isnan(head.risks), 0.0, head.risks)
    name = f"head {number + 1}"
    if (known < 0).any():
        raise RefutedError(f"{name}: a risk is below 0, and no loss is")
    proven, floor = heights(certificate, head)
    at_cuts, at_floors = _highest(certificate, head, proven.high), floor.high
    modelled = np.maximum(np.maximum(at_cuts, at_floors), 0.0)
    p = head.swing.shape[1]
    sizes = np.abs(head.offset) + np.abs(head.slope) @ np.abs(head.weights) + np.abs(head.swing) @ np.abs(
        head.weights[:p]
    )
    answered = ~np.isnan(head.risks)
    room = _TRUE_CUT * (sizes + known[head.site])
    above = answered[head.site] & (proven.low > known[head.site] + room)
    lifted = answered & (floor.low > known * (1.0 + _TRUE_CUT))
    if above.any() or lifted.any():
        g = int(head.site[np.argmax(above)]) if above.any() else int(np.argmax(lifted))
        raise RefutedError(f"{name}: {certificate.site_ids[g]} answered a risk that its own cuts refute")
    risks = np.where(answered, known, modelled)
    return upper_bound(certificate, risks), upper_bound(certificate, np.maximum(risks, modelled))


def _below(certificate: CertificateFile, head: Head, upper: float, highest: float) -> tuple[float, float]:
    """Lower bound of one head, and up to which weights: all, or within reach where it is said to be higher."""
    lower = lower_bound(certificate, head, highest)
    if head.lower <= lower + ACCURACY * upper or certificate.members:
        return lower, np.inf
    near = reach_around(head.weights)
    return lower_bound(certificate, head, highest, within=near), near


def _highest(certificate: CertificateFile, head: Head, values: Floats) -> Floats:
    found = np.zeros(len(certificate.site_ids))
    np.maximum.at(found, head.site, values)
    return found


def belongs(certificate: CertificateFile, document: Mapping[str, Any]) -> None:
    """Hold a certificate against a version's document; :class:`NotProvenError` with the first thing that differs."""
    sites = {str(site["site_id"]): site for site in document.get("sites", ())}
    shared = float(document["spec"]["label_flip_cost"])
    said: dict[str, tuple[object, object]] = {
        "run": (certificate.run_id, document.get("run_id")),
        "sites": (sorted(certificate.plants), sorted(str(site["site_id"]) for site in document.get("sites", ()))),
        "upper bound": (certificate.upper, float(document["objective"])),
        "lower bound": (certificate.lower, float(document["lower_bound"])),
        "relative gap": (certificate.gap, float(document["certified_gap"])),
        "transport norm": (certificate.transport_norm, document["spec"]["transport_norm"]),
        "constant of the loss": (certificate.lipschitz, steepness_said(document)),
        "features' support": (counts_norm(certificate) and not may_count_norm(document), False),
        "noise": (noise_of(certificate), noise_said(document)),
        "intercept": (certificate.fit_intercept, has_intercept(document)),
        "ball over the sites": (ball_of(certificate), ball_said(document)),
        "weights": weights_of(certificate, document),
    }
    if said["sites"][0] == said["sites"][1] and certificate.members:
        said |= _of_cohorts(certificate, sites, shared)
    elif said["sites"][0] == said["sites"][1]:
        own = [sites[site] for site in certificate.site_ids]
        costs = [site.get("label_flip_cost") for site in own]
        said |= {
            "sites' weights": (certificate.site_weights.tolist(), [float(site["weight"]) for site in own]),
            "sites' radii": (certificate.radii.tolist(), [float(site["radius"]) for site in own]),
            "costs of a flip": (
                certificate.label_flip_costs.tolist(), [shared if cost is None else float(cost) for cost in costs],
            ),
        }
    for name, (held, wanted) in said.items():
        if held != wanted:
            raise NotProvenError(f"the certificate is not this version's: its {name} differ")


def _of_cohorts(
    certificate: CertificateFile, sites: Mapping[str, Any], shared: float
) -> dict[str, tuple[object, object]]:
    """The cohorts' scalars, and whether they are those of their plants: weights add up, the others are means."""
    said: dict[str, tuple[object, object]] = {}
    for c, members in enumerate(certificate.members):
        own = [sites[plant] for plant in members]
        weights = np.array([float(site["weight"]) for site in own])
        whole = float(weights.sum())
        shares = weights / whole if whole > 0 else np.full(weights.shape, 1.0 / weights.size)
        costs = [site.get("label_flip_cost") for site in own]
        wanted = {
            "sites' weights": (certificate.site_weights[c], whole),
            "sites' radii": (certificate.radii[c], float(shares @ [float(site["radius"]) for site in own])),
            "costs of a flip": (
                certificate.label_flip_costs[c],
                sum(
                    share * (shared if cost is None else float(cost))
                    for share, cost in zip(shares.tolist(), costs, strict=True) if share > 0
                ),
            ),
        }
        for name, (held, mean) in wanted.items():
            if held != mean and not abs(held - mean) <= _WEIGHT_SUM * abs(mean):
                said[name] = (held, mean)
    return said
