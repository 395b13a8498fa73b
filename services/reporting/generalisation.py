"""RF Theorem 4 for a version: what it adds to the share of wrong diagnoses on the training rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, get_args

import numpy as np

from models.fairness.ambiguity_set import RelativeSet
from models.fairness.generalisation import generalisation_bound
from models.tuning.automatic import AutomaticLift
from services.contracts.evaluation.fairness import GeneralisationBound
from services.contracts.plans.plan import Plan
from services.contracts.problems.tuning import AUTO
from services.contracts.versions.model_version import ModelVersion

SHARE = 0.2
"""Alpha where the method has none: the worst 20 % of the sites, which the indices of a report speak of."""
EPSILON, DELTA = 0.01, 0.05
_AUTOMATIC: Final = 1 + len(get_args(AutomaticLift))
"""Lifts that "auto" may have chosen among: the plan's own, and its kinds, of which the rows say which it tries."""


def lifts_tried(plan: Plan) -> int:
    """Lifts among which the rows chose that of a run with this plan; 1: none was chosen."""
    if plan.tuned is None:
        return 1
    if plan.tuning == AUTO:
        return _AUTOMATIC
    return len({each.model_dump_json(include={"lift"}) for each in plan.tuned.candidates})


def version_bound(
    version: ModelVersion, rows: Sequence[int], parameters: Mapping[str, float], lifts: int = 1,
    weights: Sequence[float] | None = None,
) -> GeneralisationBound | None:
    """The bound for planes between two classes; ``rows`` of the sites' training parts, ``weights`` None: all alike.

    None for a target, for more than two classes (the VC dimension of one plane a class against the rest is not known in
    closed form), where there are as few rows as weights, and where the run chose ``phi`` by its rows
    (``choose_after``).

    The theorem has as many rows at every site: the fewest are taken, so the bound holds for more. ``phi``, ``alpha``,
    ``beta`` are the method's; else 0 and :data:`SHARE`. The planes of one lift are a class that is fixed beforehand;
    where a tuning chose among ``lifts``, each has its bound with the share ``delta / lifts``, so that all hold
    together. The version's has the dimension of its own.
    """
    if version.task != "classification" or version.weights.shape[0] != 1 or version.network is not None:
        return None
    if not rows or min(rows) < 1:
        return None
    n_sites, dimension, fewest = len(rows), int(version.weights.shape[1]), min(rows)
    if dimension >= fewest * n_sites or parameters.get("choose_after", 0.0) > 0:
        return None
    phi, alpha, least = parameters.get("phi", 0.0), parameters.get("alpha", SHARE), 1.0 / n_sites
    if phi > 0 and weights is not None:
        # The method's own mixtures go by the weights; of phi = 0 the bound speaks of equal shares.
        beta = parameters.get("beta", alpha)
        ambiguity = RelativeSet.of_weights(np.asarray(weights, dtype=np.float64), phi, alpha, beta)
    else:
        alpha = max(alpha, least)
        ambiguity = RelativeSet.of_shares(n_sites, phi, alpha, max(parameters.get("beta", alpha), least))
    added = generalisation_bound(
        ambiguity, rows_per_site=fewest, vc_dimension=dimension, loss_bound=1.0, epsilon=EPSILON, delta=DELTA / lifts
    )
    return GeneralisationBound(
        added=added, phi=phi, alpha=alpha, rows_per_site=fewest, vc_dimension=dimension,
        skewness=ambiguity.skewness(), epsilon=EPSILON, delta=DELTA, lifts=lifts,
    )
