"""How unequally a model version serves the sites: indices over one scalar a site, and a gate on them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final, Literal, Self

from pydantic import Field, model_validator

from models.basics import ProblemError
from models.fairness.indices import INDICES, get_index, relative_unfairness
from services.contracts.base import Contract, RunId, Slug

Basis = Literal["loss", "worst_case_risk"]
"""loss: mean training loss on the site's held-out rows. worst_case_risk: exact, on its training rows."""

BASIS_NAMES: Final[Mapping[Basis, str]] = {"loss": "held-out loss", "worst_case_risk": "worst-case risk"}
"""What readers see of a basis."""

FEW_SITES = 5
"""Below this many sites indices say much about single sites, and the report says so."""

WORST_SITE = "worst_site"
SHARE = 0.2
"""Default share of the sites at either end."""


class FairnessGate(Contract):
    """``index`` of the sites' losses (or worst-case risks) must be at or below ``at_most``.

    ``worst_site`` is the largest of them. ``alpha`` and ``beta`` are the shares of relative_unfairness: the mean over
    the worst ``alpha`` of the sites by that over the best ``beta``.
    """

    index: str
    at_most: float = Field(ge=0, allow_inf_nan=False)
    basis: Basis = "loss"
    alpha: float = Field(default=SHARE, gt=0, le=1)
    beta: float = Field(default=SHARE, gt=0, le=1)

    @model_validator(mode="after")
    def _index_is_known(self) -> Self:
        if self.index != WORST_SITE:
            try:
                get_index(self.index)
            except ProblemError:
                known = ", ".join(sorted([*INDICES, WORST_SITE]))
                raise ValueError(f"there is no fairness index {self.index!r}; indices are {known}") from None
        # By value, not by what was given: a stored gate comes back with all its fields.
        if self.index != "relative_unfairness" and (self.alpha, self.beta) != (SHARE, SHARE):
            raise ValueError(f"alpha and beta belong to relative_unfairness, the index is {self.index}")
        return self

    @property
    def name(self) -> str:
        """Name in reports."""
        return f"{self.index} of {self.basis.replace('_', ' ')}"

    def of(self, values: list[float]) -> float:
        """The index of these values, one for each site."""
        if self.index == WORST_SITE:
            return max(values)
        if self.index == "relative_unfairness":
            return relative_unfairness(values, self.alpha, self.beta)
        return float(get_index(self.index)(values))


class SiteFairness(Contract):
    """How a model serves one site.

    ``weight`` is the site's share of the mixture, ``worst_weight`` that in the worst mixture at the model's weights
    (the mean over the heads); ``worst_case_risk`` is the exact one on its training part. ``f1``: over the classes that
    the site's counted rows have (``models.evaluation.scores``). ``fresh``: it answered the last round.
    """

    site_id: Slug
    weight: float
    worst_weight: float | None = None
    worst_case_risk: float | None = None
    loss: float | None = Field(default=None, description="mean training loss on the held-out rows, heads summed")
    f1: float | None = None
    mae: float | None = Field(default=None, description="in the target's unit")
    fresh: bool = True


class LorenzPoint(Contract):
    """The best ``sites`` (a share) of the sites bear the share ``losses`` of all loss."""

    sites: float
    losses: float
    transformed: float | None = Field(default=None, description="losses - sites / 2 (RF section 7)")


def figures(sites: Iterable[SiteFairness], basis: Basis) -> dict[str, float | None]:
    """Figure of each site by its id; None where there is no finite one."""
    found = {site.site_id: site.loss if basis == "loss" else site.worst_case_risk for site in sites}
    return {name: value if value is not None and math.isfinite(value) else None for name, value in found.items()}


class FairnessIndices(Contract):
    """All indices over one basis; ``missing`` sites are known by no figure and left out."""

    basis: Basis
    n_sites: int
    missing: tuple[Slug, ...] = ()
    relative_unfairness: float = Field(description="worst 20 % over best 20 % of the sites")
    palma: float
    gini: float
    atkinson: float = Field(description="aversion 1")
    atkinson_infinite: float
    worst_share: float = Field(description="mean over the worst 20 % of the sites")
    best_share: float = Field(description="mean over the best 20 % of the sites")
    worst_site: float
    mean: float = Field(description="weighted as the sites are in the mixture")
    lorenz: tuple[LorenzPoint, ...]


class IndexChange(Contract):
    """An index of this version beside the champion's."""

    index: str
    basis: Basis
    here: float
    champion: float
    better: bool = Field(description="this version has the lower one, beyond rounding")


class GeneralisationBound(Contract):
    """How far the share of wrong diagnoses on new data may be above that on the training rows (RF Theorem 4).

    ``added`` holds with probability ``1 - delta`` for every mixture of Lambda_phi over the sites and every model of
    ``vc_dimension``; above 1 it says nothing. ``rows_per_site`` is the fewest that a site trained on. Where a tuning
    chose among ``lifts``, the bounds of all of them hold together: each was given ``delta / lifts``.
    """

    added: float
    phi: float
    alpha: float
    rows_per_site: int
    vc_dimension: int
    skewness: float
    epsilon: float
    delta: float
    lifts: int = 1


class FairnessReport(Contract):
    """Fairness of a model version over its sites: scalars, indices, the comparison with the champion, and notes."""

    name: Slug
    version: str
    run_id: RunId
    method: Slug
    created_at: datetime
    unit: str | None = None
    sites: tuple[SiteFairness, ...]
    indices: tuple[FairnessIndices, ...] = ()
    champion_version: str | None = Field(default=None, description="None: there is none, or this is it")
    champion_indices: tuple[FairnessIndices, ...] = ()
    changes: tuple[IndexChange, ...] = Field(
        default=(), description="of what is in one measure: ratios always, losses of one loss, risks over one ball"
    )
    generalisation: GeneralisationBound | None = Field(
        default=None, description="None: rows, VC dimension or set of mixtures unknown"
    )
    notes: tuple[str, ...] = ()
