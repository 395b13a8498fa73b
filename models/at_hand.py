r"""DRFL where all rows are in this process: every loss, support and ball over the sites, solved to a certified gap.

The interior point of ``models.pooled`` is the quickest where it fits (hinge, fixed weights). All else goes to the level
bundle of ``models.methods``, as a federated run would, in units in which all features are of one size.
"""

from __future__ import annotations

from collections.abc import Mapping

from models.federation import Training, train
from models.losses.hinge import Hinge
from models.mixture import MixtureBall
from models.pooled import train_pooled
from models.pooled_box import train_pooled_box
from models.problem import BoxSupport, SiteProblem


def train_at_hand(
    sites: Mapping[str, SiteProblem],
    *,
    weights: Mapping[str, float] | None = None,
    mixture: MixtureBall,
    gap: float = 1e-4,
    max_rounds: int = 1000,
) -> Training:
    """Minimise ``max_{q in Q} sum_g q_g r_g(w)``; parameters as in :func:`models.federation.train`."""
    specs = [site.spec for site in sites.values()]
    if mixture.radius == 0 and all(isinstance(spec.loss, Hinge) for spec in specs):
        if all(spec.support is None for spec in specs):
            return train_pooled(sites, weights=weights, gap=gap)
        if all(isinstance(spec.support, BoxSupport) for spec in specs):
            return train_pooled_box(sites, weights=weights, gap=gap, max_rounds=max_rounds)
    return train(sites, weights=weights, mixture=mixture, gap=gap, max_rounds=max_rounds)
