"""What a race knows of its problem from the start, and where it is with a candidate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray, TransportNorm
from models.losses.base import Loss
from models.problem import SiteTerms
from models.site_ambiguity.ball import MixtureNorm


@dataclass(frozen=True)
class TuningTerms:
    """What the server knows of the problem: the sites with their radii by the rule, and what all candidates share.

    ``coupled``: planes of several classes are, after the training (``coupling``).
    """

    sites: tuple[SiteTerms, ...]
    loss: Loss
    transport_norm: TransportNorm
    fit_intercept: bool
    mixture_norm: MixtureNorm = "l2"
    unbounded: bool = True
    coupled: bool = False

    @property
    def weights(self) -> FloatArray:
        """Site weights (G,)."""
        return np.array([site.weight for site in self.sites])

    @property
    def radius(self) -> float:
        """Mean of the sites' radii by the rule, in their weights."""
        return float(np.average([site.radius for site in self.sites], weights=self.weights))


@dataclass(frozen=True)
class Step:
    """Where a candidate is: ``point`` (D,) to ask next, ``best`` (D,) known, and the relative gap of its bounds."""

    point: FloatArray
    best: FloatArray
    gap: float
