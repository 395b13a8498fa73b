r"""How large a Wasserstein ball should be: given, from the sample count, from a confidence, or estimated from the data.

Sources: FDR Proposition 2 (after Fournier and Guillin 2015) and section 6 (``radius = 1 / (beta N_g)``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray, ProblemError, TransportNorm
from models.geometry.norms import vector_norm
from models.losses.base import Task
from models.solvers.assignment import assign
from models.validation import check_rows

MAX_RESAMPLED_ROWS = 400
"""Rows of one half when a radius is estimated: an assignment problem costs the cube of it."""


def samples_radius(beta: float, n_samples: int) -> float:
    """``1 / (beta N_g)``, the paper's heuristic. :class:`ProblemError` unless beta is above 0 and there is a sample."""
    if not (math.isfinite(beta) and beta > 0):
        raise ProblemError(f"beta must be a finite number above 0, got {beta}")
    if n_samples < 1:
        raise ProblemError(f"a radius from the number of samples needs at least one sample, got {n_samples}")
    return 1.0 / (beta * n_samples)


@dataclass(frozen=True)
class LightTail:
    """Constants of FDR Proposition 2: exponent ``a > 1`` of Assumption 1 and ``c1, c2, c3 > 0``.

    They depend on the true distribution, the dimension and the transport cost; nobody can read them off the data.
    """

    exponent: float
    c1: float
    c2: float
    c3: float

    def __post_init__(self) -> None:
        """Refuse constants that the proposition does not allow."""
        if not (math.isfinite(self.exponent) and self.exponent > 1):
            raise ProblemError(f"the tail exponent must be above 1, got {self.exponent}")
        for name, value in (("c1", self.c1), ("c2", self.c2), ("c3", self.c3)):
            if not (math.isfinite(value) and value > 0):
                raise ProblemError(f"the constant {name} must be a finite number above 0, got {value}")


def confidence_radius(confidence: float, n_samples: int, n_features: int, tail: LightTail) -> float:
    r"""Radius whose ball holds the true distribution with probability ``confidence`` (FDR Proposition 2).

    With ``q = log(c1 / (1 - confidence)) / c2``: ``(q / N)^(1/a)`` where ``N < q / c3``, else
    ``(q / N)^(1/max(P, 2))``.

    The paper prints ``1/P``, which is wrong for one feature: no sample comes nearer to the truth than ``N^(-1/2)``, and
    its source has that rate there (Fournier and Guillin 2015, Theorem 2, of the Wasserstein distance of order 1). With
    two features the source has a logarithm besides, which the proposition leaves out.

    :class:`ProblemError` for a confidence outside (0, 1), and without a sample or a feature.
    """
    if not 0 < confidence < 1:
        raise ProblemError(f"confidence must lie between 0 and 1, got {confidence}")
    if n_samples < 1 or n_features < 1:
        raise ProblemError(f"a radius needs at least one sample and one feature, got {n_samples} and {n_features}")
    needed = math.log(tail.c1 / (1.0 - confidence)) / tail.c2
    if needed <= 0:
        return 0.0
    power = 1.0 / tail.exponent if n_samples < needed / tail.c3 else 1.0 / max(n_features, 2)
    return float((needed / n_samples) ** power)


def mixture_confidence(confidences: Iterable[float]) -> float:
    """Probability that the mixture of balls holds the mixture of truths: the product over the sites.

    :class:`ProblemError` for one outside (0, 1).
    """
    product = 1.0
    for confidence in confidences:
        if not 0 <= confidence <= 1:
            raise ProblemError(f"a confidence lies between 0 and 1, got {confidence}")
        product *= confidence
    return product


@dataclass(frozen=True)
class RadiusEstimate:
    """An estimate, not a guarantee: quantile of resampled distances, and how it came about."""

    radius: float
    confidence: float
    n_resamples: int
    label: str = "estimate by resampling"


def estimated_radius(
    features: FloatArray,
    labels: FloatArray,
    *,
    label_flip_cost: float,
    transport_norm: TransportNorm,
    confidence: float,
    seed: int,
    n_resamples: int = 50,
    task: Task = "classification",
) -> RadiusEstimate:
    r"""Radius from the data alone: how far apart two samples of this site are, scaled to its full size.

    The rows are split at random into two halves of n rows, whose exact Wasserstein distance under the transport cost
    ``||x - x'|| + label_flip_cost 1[y != y']`` is an assignment problem. The distance of a sample of n from the truth
    is of that order, and shrinks as ``n^(-1/max(P, 2))``; the quantile over the resamples, scaled so to N rows, is
    returned. It says nothing of what the site never saw: an estimate, to be labelled so. For the vault only.

    ``labels`` (N,) are numbers of classes, two or more: a change of class costs one flip, which is at least what it
    costs in each head of one-vs-rest. For a regression they are targets, and the cost of moving one from y to y' is
    ``label_flip_cost |y - y'|``.

    :class:`ProblemError` for a confidence outside (0, 1), a flip cost not above 0, fewer than four rows or no
    resample.
    """
    check_rows(features, np.where(labels == labels[:1], 1.0, -1.0), None)
    if not 0 < confidence < 1:
        raise ProblemError(f"confidence must lie between 0 and 1, got {confidence}")
    if not label_flip_cost > 0:
        raise ProblemError(f"label_flip_cost must be above 0 (infinity allowed), got {label_flip_cost}")
    if features.shape[0] < 4 or n_resamples < 1:
        raise ProblemError("an estimated radius needs at least four rows and one resample")
    random = np.random.default_rng(seed)
    half = min(features.shape[0] // 2, MAX_RESAMPLED_ROWS)
    distances = [
        _split_distance(
            features, labels, random.permutation(features.shape[0])[: 2 * half], label_flip_cost, transport_norm, task
        )
        for _ in range(n_resamples)
    ]
    shrink = (half / features.shape[0]) ** (1.0 / max(features.shape[1], 2))
    return RadiusEstimate(float(np.quantile(distances, confidence)) * shrink, confidence, n_resamples)


def _split_distance(
    features: FloatArray, labels: FloatArray, rows: np.ndarray, label_flip_cost: float, norm: TransportNorm,
    task: Task,
) -> float:
    """Exact Wasserstein distance between the first and the second half of the rows."""
    half = rows.size // 2
    first, second = rows[:half], rows[half:]
    cost = np.stack([vector_norm(features[second] - features[i], norm) for i in first])
    apart = np.abs(labels[first][:, None] - labels[second][None, :])
    moved = apart if task == "regression" else np.where(apart != 0, 1.0, 0.0)
    # Halves with different class counts cannot be matched without a flip; a finite cost keeps the distance finite.
    flip = label_flip_cost if math.isfinite(label_flip_cost) else float(cost.max(initial=0.0))
    cost = cost + flip * moved
    return float(cost[np.arange(half), assign(cost)].mean())
