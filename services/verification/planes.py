"""The planes that a certificate's heads make, and those of a version: the same, or coupled as the version says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from services.verification.certificate_file import CertificateFile
from services.verification.stated import is_joint

_ROUNDING = 1e-9
"""Relative to the sizes of its terms: by as much a coupled weight may differ, summed in another order."""


def weights_of(certificate: CertificateFile, document: Mapping[str, Any]) -> tuple[object, object]:
    """The certificate's planes and the version's; where those were coupled, as the version says they were.

    Of coupled planes those of the version are told twice where they are near enough.

    :class:`ValueError` where the document has no matrix for them.
    """
    planes, told = _planes(certificate, document), np.asarray(document["weights"], np.float64)
    coupling = document.get("coupling")
    if coupling is None:
        return planes, told.tolist()
    matrix, offsets, heads = (np.asarray(each, np.float64) for each in (
        coupling["matrix"], coupling["offsets"], planes
    ))
    if matrix.ndim != 2 or heads.ndim != 2:
        raise ValueError("planes are coupled by a matrix")
    found, sizes = matrix @ heads, np.abs(matrix) @ np.abs(heads)
    found[:, -1] += offsets
    sizes[:, -1] += np.abs(offsets)
    near = found.shape == told.shape and bool((np.abs(found - told) <= _ROUNDING * sizes).all())
    return (told.tolist() if near else found.tolist()), told.tolist()


def _planes(certificate: CertificateFile, document: Mapping[str, Any]) -> list[list[float]]:
    spec, count = document["spec"], len(document["weights"])
    loss = spec.get("loss")
    if (loss.get("name") if isinstance(loss, Mapping) else loss) == "cross_entropy":  # one head, of all planes
        return _of_all_classes(certificate, count, bool(spec["fit_intercept"]))
    if is_joint(document):
        found = _of_all_classes(certificate, count - 1, bool(spec["fit_intercept"]))
        return [[0.0] * len(found[0]), *found] if found else []  # the plane of the first class is 0
    last = [] if certificate.fit_intercept else [0.0]
    return [[*head.weights.tolist(), *last] for head in certificate.heads]


def _of_all_classes(certificate: CertificateFile, count: int, with_intercept: bool) -> list[list[float]]:
    """Planes of one head for all classes: slopes row by row, then intercepts."""
    if len(certificate.heads) != 1 or not count or certificate.heads[0].weights.size % count:
        return []
    weights = certificate.heads[0].weights
    size = weights.size // count - int(with_intercept)
    ends = weights[count * size :].tolist() if with_intercept else [0.0] * count
    slopes = weights[: count * size].reshape(count, size).tolist()
    return [[*slope, end] for slope, end in zip(slopes, ends, strict=True)]
