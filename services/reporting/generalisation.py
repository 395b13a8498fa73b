"""RF Theorem 4 for a version: what it adds to the share of wrong diagnoses on the training rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from models.fairness.ambiguity_set import RelativeSet
from models.fairness.generalisation import generalisation_bound
from services.contracts.evaluation.fairness import GeneralisationBound
from services.contracts.versions.model_version import ModelVersion

SHARE = 0.2
"""Alpha where the method has none: the worst 20 % of the sites, which the indices of a report speak of."""
EPSILON, DELTA = 0.01, 0.05


def version_bound(
    version: ModelVersion, rows: Sequence[int], parameters: Mapping[str, float]
) -> GeneralisationBound | None:
    """The bound for planes between two classes; ``rows`` of the sites' training parts.

    None for a target, for more than two classes (the VC dimension of one plane a class against the rest is not known in
    closed form), and where there are as few rows as weights. The theorem has as many rows at every site: the fewest
    are taken, so the bound holds for more. ``phi``, ``alpha``, ``beta`` are the method's; else 0 and :data:`SHARE`.
    """
    if version.task != "classification" or version.weights.shape[0] != 1 or version.network is not None:
        return None
    if not rows or min(rows) < 1:
        return None
    n_sites, dimension, fewest = len(rows), int(version.weights.shape[1]), min(rows)
    if dimension >= fewest * n_sites:
        return None
    phi, least = parameters.get("phi", 0.0), 1.0 / n_sites
    alpha = max(parameters.get("alpha", SHARE), least)
    ambiguity = RelativeSet.of_shares(n_sites, phi, alpha, max(parameters.get("beta", alpha), least))
    added = generalisation_bound(
        ambiguity, rows_per_site=fewest, vc_dimension=dimension, loss_bound=1.0, epsilon=EPSILON, delta=DELTA
    )
    return GeneralisationBound(
        added=added, phi=phi, alpha=alpha, rows_per_site=fewest, vc_dimension=dimension,
        skewness=ambiguity.skewness(), epsilon=EPSILON, delta=DELTA,
    )
