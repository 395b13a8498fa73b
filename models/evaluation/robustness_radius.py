r"""Certified bounds on the optimal worst-case risk, and the robustness radius of single diagnoses."""

from __future__ import annotations

import math

import numpy as np

from models.ambiguity import DUAL_NORM, vector_norm
from models.lift import FourierLift
from models.problem import Certificate, FloatArray, ProblemError, TransportNorm

ROUNDING = 1e-9
"""Relative to max(1, upper): by how much the bounds of an exactly solved problem may cross for float64 reasons."""


class CertificateError(ArithmeticError):
    """The bounds contradict each other: an answer was no cut of the risk, or the data changed during the run."""


def check_certificate(certificate: Certificate) -> Certificate:
    """Return the certificate if it holds.

    Bounds that cross within rounding are closed by lowering the lower one, which keeps it a bound.

    Raises
    ------
    CertificateError
        The lower bound is above the upper bound beyond rounding, or a bound is not a number.
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
    return Certificate(upper, min(lower, upper), certificate.fresh_weight)


def combined_certificate(certificates: list[Certificate]) -> Certificate:
    """Certificate of the sum of independent problems (the heads of one-vs-rest): bounds add up."""
    if not certificates:
        raise ProblemError("there is no certificate to combine")
    return check_certificate(
        Certificate(
            upper=sum(each.upper for each in certificates),
            lower=sum(each.lower for each in certificates),
            fresh_weight=min(each.fresh_weight for each in certificates),
        )
    )


def robustness_radius(
    weights: FloatArray, features: FloatArray, transport_norm: TransportNorm, lift: FourierLift | None = None
) -> FloatArray:
    r"""Smallest feature change that changes each diagnosis, (n,).

    One head: ``|<w, x> + b| / ||w||_*``. More: the least over rivals j of ``(s_k - s_j) / ||w_k - w_j||_*``, k being
    the predicted class. Where no change can flip the decision (equal planes, or none) the radius is infinite, unless
    the scores tie, in which case it is 0: the decision hangs on nothing.

    With a lift the planes lie in lifted features, and the answer is a lower bound of the smallest change of the
    features themselves: the norms of the planes are replaced by bounds on how steep the scores can be anywhere.

    Parameters
    ----------
    weights : (K, P + 1), the intercept last (0 without one). features : (n, P), as scaled for the model, not lifted.
    lift : None, or what is done to the features before the planes see them; P counts the lifted ones then.
    """
    if lift is not None:
        features = lift.apply(features)
    if weights.ndim != 2 or features.ndim != 2 or weights.shape[1] != features.shape[1] + 1:
        raise ProblemError(f"weights must be (K, P + 1) and features (n, P), got {weights.shape} and {features.shape}")
    planes, scores = weights[:, :-1], features @ weights[:, :-1].T + weights[:, -1]
    dual = DUAL_NORM[transport_norm]

    def steepness(slopes: FloatArray) -> FloatArray:
        return vector_norm(slopes, dual) if lift is None else lift.steepness(slopes, transport_norm)

    if weights.shape[0] == 1:
        return _ratio(np.abs(scores), steepness(planes)[None])[:, 0]
    winner = scores.argmax(axis=1)
    lead = scores[np.arange(scores.shape[0]), winner][:, None] - scores
    apart = steepness(planes[:, None] - planes[None])[winner]
    radius = _ratio(lead, apart)
    radius[np.arange(radius.shape[0]), winner] = np.inf
    return np.asarray(radius.min(axis=1))


def _ratio(lead: FloatArray, norm: FloatArray) -> FloatArray:
    lead, norm = np.broadcast_arrays(lead, norm)
    still = np.where(lead > 0, np.inf, 0.0)
    return np.divide(lead, norm, out=still, where=norm > 0)
