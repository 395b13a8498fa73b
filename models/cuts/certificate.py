"""Certified bounds on the optimal worst-case risk: bounds that hold, or an error."""

from __future__ import annotations

import math
from dataclasses import replace

from models.basics import ProblemError
from models.problem import Certificate

ROUNDING = 1e-9
"""Relative to max(1, upper): by how much the bounds of an exactly solved problem may cross for float64 reasons."""


class CertificateError(ArithmeticError):
    """The bounds contradict each other: an answer was no cut of the risk, or the data changed during the run."""


def check_certificate(certificate: Certificate) -> Certificate:
    """Return the certificate if it holds.

    Bounds that cross within rounding are closed by lowering the lower one, which keeps it a bound. ``CertificateError``
    where the lower bound is above the upper one beyond rounding, or a bound is not a number.
    """
    upper, lower = certificate.upper, certificate.lower
    if math.isnan(upper) or math.isnan(lower):
        raise CertificateError(f"a certificate needs two numbers, got lower {lower} and upper {upper}")
    if not 0.0 <= certificate.fresh_weight <= 1.0 + 1e-9:
        raise CertificateError(f"the fresh weight must lie in [0, 1], got {certificate.fresh_weight}")
    if lower > upper + ROUNDING * max(1.0, abs(upper)):
        raise CertificateError(
            f"the lower bound {lower:.12g} lies above the upper bound {upper:.12g}: "
            "a site's answer is no cut of its risk, or its data changed during the run"
        )
    return replace(certificate, lower=min(lower, upper))


def combined_certificate(certificates: list[Certificate]) -> Certificate:
    """Certificate of the sum of independent problems (the heads of one-vs-rest): bounds add up.

    :class:`ProblemError` where there is none.
    """
    if not certificates:
        raise ProblemError("there is no certificate to combine")
    return check_certificate(
        Certificate(
            upper=sum(each.upper for each in certificates),
            lower=sum(each.lower for each in certificates),
            fresh_weight=min(each.fresh_weight for each in certificates),
            scale=sum(each.scale for each in certificates),
        )
    )
