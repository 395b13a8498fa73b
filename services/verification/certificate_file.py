"""The certificate file: what a version carries so that anyone can check its bounds. One npz, its header as JSON."""

from __future__ import annotations

import io
import json
import math
from dataclasses import dataclass, field
from typing import Any
from zipfile import ZipFile

import numpy as np
from numpy.lib.format import read_array_header_1_0, read_magic
from numpy.typing import NDArray

from services.contracts.array_files import UNREADABLE, opened_arrays
from services.contracts.errors import InvalidInputError
from services.verification.enclosures import Floats

SCHEMA = "ballast.certificate/1"
NORMS = ("l1", "l2", "linf")
_CUTS = ("offset", "slope", "norm_weight", "swing", "multipliers", "around")
_ARRAYS = ("weights", "risks", "mixture", "bounds", "site", *_CUTS)
_LARGEST = 1e100
"""No honest number comes near, and no product of two is infinite."""


@dataclass(frozen=True)
class Head:
    """One plane (or linear function): G sites, D weights of which the first P meet the norm, m cuts.

    ``weights`` (D,) and the sites' ``risks`` (G,) there, NaN where one did not answer. Cut j says of site ``site[j]``
    that ``risk(w) >= offset_j + <slope_j, w> + norm_weight_j ||w||_* + <swing_j, |w|>``. ``multipliers`` (m,) and
    ``mixture`` (G,) prove the lower bound; ``around`` (m,) bound the set of the best weights where no norm does.
    ``upper`` and ``lower`` are the bounds that the head is said to have. ``earlier`` (m,): cuts that were answered in
    the certificate's ``earlier_run``; empty: none.
    """

    weights: Floats
    risks: Floats
    mixture: Floats
    site: NDArray[np.intp]
    offset: Floats
    slope: Floats
    norm_weight: Floats
    swing: Floats
    multipliers: Floats
    around: Floats
    upper: float
    lower: float
    earlier: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))


@dataclass(frozen=True)
class CertificateFile:
    """The problem, the heads, and the figures that the version claims. Arrays (G,) by site.

    ``members``: where the server saw sums alone, a site is a cohort, and these are the plants of each; empty: sites are
    plants. ``confidence`` below 1: the sums had noise, so the bounds hold with that probability, of weights whose
    Euclidean norm is at most ``within``. ``earlier_run``: run of which cuts were taken over, or that had taken them
    over in turn, since their plants signed that nothing changed; empty: none.
    """

    run_id: str
    site_ids: tuple[str, ...]
    site_weights: Floats
    radii: Floats
    label_flip_costs: Floats
    lipschitz: float
    transport_norm: str
    fit_intercept: bool
    mixture_norm: str
    mixture_radius: float
    heads: tuple[Head, ...]
    upper: float
    lower: float
    gap: float
    members: tuple[tuple[str, ...], ...] = ()
    confidence: float = 1.0
    within: float = math.inf
    earlier_run: str = ""

    @property
    def plants(self) -> tuple[str, ...]:
        """The plants that the model is made of."""
        return tuple(plant for each in self.members for plant in each) if self.members else self.site_ids


_HEADER = ("run_id", "lipschitz", "transport_norm", "fit_intercept", "mixture_norm", "mixture_radius", "upper", "lower",
           "gap")
_SITES = ("site_weights", "radii", "label_flip_costs")


def write_certificate(certificate: CertificateFile) -> bytes:
    """The file's bytes; the same certificate gives the same bytes."""
    header = {name: getattr(certificate, name) for name in _HEADER}
    if certificate.members:
        header["members"] = [list(each) for each in certificate.members]
    if certificate.confidence < 1:
        header |= {"confidence": certificate.confidence, "within": certificate.within}
    if certificate.earlier_run:
        header["earlier_run"] = certificate.earlier_run
    header |= {"schema": SCHEMA, "site_ids": list(certificate.site_ids), "heads": len(certificate.heads)}
    arrays = {name: getattr(certificate, name) for name in _SITES}
    for k, head in enumerate(certificate.heads):
        own = {name: getattr(head, name) for name in _ARRAYS if name != "bounds"}
        arrays |= {f"head{k}.{name}": array for name, array in own.items()}
        if certificate.earlier_run:
            arrays[f"head{k}.earlier"] = head.earlier.astype(np.uint8)
        arrays[f"head{k}.bounds"] = np.array([head.upper, head.lower])
    text = json.dumps(header, sort_keys=True, allow_nan=False).encode()
    stored = io.BytesIO()
    np.savez(stored, header=np.frombuffer(text, np.uint8), **arrays)
    return stored.getvalue()


def read_certificate(data: bytes) -> CertificateFile:
    """Certificate of a file's bytes; :class:`InvalidInputError` with one line where it is not one.

    Whoever gave the file may have made it: it is read in the memory of a few times its size, or not at all.
    """
    try:
        _check_sizes(data)
        with opened_arrays(io.BytesIO(data)) as stored:
            arrays = {name: stored[name] for name in stored}
        header = json.loads(arrays.pop("header").tobytes())
        if header["schema"] != SCHEMA:
            raise InvalidInputError(f"not a certificate file: its schema must be {SCHEMA!r}")
        heads = tuple(_head(arrays, k) for k in range(int(header["heads"])))
        fields: dict[str, Any] = {name: np.asarray(arrays[name], np.float64) for name in _SITES}
        fields |= {name: header[name] for name in _HEADER}
        fields["members"] = tuple(tuple(str(plant) for plant in each) for each in header.get("members", ()))
        fields |= {name: float(header[name]) for name in ("confidence", "within") if "confidence" in header}
        fields["earlier_run"] = str(header.get("earlier_run", ""))
        found = CertificateFile(site_ids=tuple(str(site) for site in header["site_ids"]), heads=heads, **fields)
        _check(found)
    except (*UNREADABLE, KeyError, TypeError, AttributeError, OverflowError):
        raise InvalidInputError("not a certificate file: it must be the npz file that a version carries") from None
    return found


def _check_sizes(data: bytes) -> None:
    """``ValueError`` where a zip file of arrays would take more memory than it has bytes."""
    with ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        if sum(each.file_size for each in members) > len(data):  # packed, or members that lie over one another
            raise ValueError("not stored as it is")
        for each in members:
            with archive.open(each) as stored:
                if read_magic(stored) != (1, 0):
                    raise ValueError("an array of another version")
                shape, _, kind = read_array_header_1_0(stored)
                if math.prod(shape) * kind.itemsize > each.file_size:
                    raise ValueError("an array larger than its file")


def _head(arrays: dict[str, Any], k: int) -> Head:
    own = {name: np.asarray(arrays[f"head{k}.{name}"]) for name in _ARRAYS}
    upper, lower = (float(bound) for bound in own.pop("bounds"))
    site = own.pop("site").astype(np.intp)
    earlier = np.asarray(arrays.get(f"head{k}.earlier", np.zeros(0))).astype(np.bool_)
    if earlier.size and earlier.shape != site.shape:
        raise InvalidInputError("a certificate says of each cut whether it is of an earlier run, or of none")
    numbers = {name: own[name].astype(np.float64) for name in own}
    return Head(site=site, upper=upper, lower=lower, earlier=earlier, **numbers)


def _check(found: CertificateFile) -> None:
    """Shapes that fit one another, numbers that are numbers; the rest is for the proof."""
    n_sites, flips = len(found.site_ids), found.label_flip_costs
    scalars = (found.upper, found.lower, found.gap, found.lipschitz, found.mixture_radius)
    if not all(isinstance(each, float | int) and math.isfinite(each) for each in scalars):
        raise InvalidInputError("the certificate's bounds must be finite numbers")
    if not isinstance(found.fit_intercept, bool):  # as a number it would say how many weights nothing is charged for
        raise InvalidInputError("not a certificate file: it says by true or false whether a weight is an intercept")
    if not {found.transport_norm, found.mixture_norm} <= set(NORMS):
        raise InvalidInputError(f"the certificate's norms must be of {', '.join(NORMS)}")
    if not (n_sites and found.heads and found.mixture_radius >= 0 and len(set(found.site_ids)) == n_sites):
        raise InvalidInputError("a certificate needs sites, each once, at least one head, and a ball over the sites")
    if not (0 < found.confidence <= 1 and found.within > 0):
        raise InvalidInputError("a certificate holds with a probability above 0, of weights within a norm above 0")
    if len(found.members) not in (0, n_sites) or not all(found.members) or len(set(found.plants)) < len(found.plants):
        raise InvalidInputError("each cohort of a certificate needs plants, and each plant is in one cohort")
    for array in (found.site_weights, found.radii, np.where(np.isposinf(flips), 0.0, flips)):
        _fits(array, (n_sites,))
    for head in found.heads:
        d, m = head.weights.size, head.site.size
        swings = head.swing.shape[-1] if head.swing.ndim == 2 else -1
        if d <= int(found.fit_intercept) or swings not in (0, d - int(found.fit_intercept)):
            raise InvalidInputError("the certificate's weights do not fit its features")
        _fits(head.weights, (d,))
        _fits(np.where(np.isnan(head.risks), 0.0, head.risks), (n_sites,))
        _fits(head.mixture, (n_sites,))
        _fits(head.slope, (m, d))
        _fits(head.swing, (m, swings))
        for array in (head.offset, head.norm_weight, head.multipliers, head.around):
            _fits(array, (m,))
        if head.site.shape != (m,) or ((head.site < 0) | (head.site >= n_sites)).any():
            raise InvalidInputError("a cut of the certificate is of a site that it does not name")
        _fits(np.array([head.upper, head.lower]), (2,))


def _fits(array: Floats, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise InvalidInputError(f"an array of the certificate has the shape {array.shape}, it must be {shape}")
    if not (np.abs(array) <= _LARGEST).all():
        raise InvalidInputError(f"the certificate holds a number that is not finite, or above {_LARGEST:g}")
