"""The client step of a site, stated as the solvers of the hinge want it."""

from __future__ import annotations

import numpy as np

from models.basics import FloatArray
from models.problem import SiteProblem
from models.prox.hinge.statement import Statement


def stated(site: SiteProblem, centre: FloatArray, penalty: float) -> Statement:
    """Rows times labels, with an intercept, and all parameters in sums over the rows."""
    rows = np.column_stack((site.features * site.labels[:, None], site.labels))
    n, spec = site.labels.size, site.spec
    return Statement(
        rows,
        site.features.shape[1],
        np.zeros(centre.size),
        0.0,
        centre,
        n * spec.radius,
        spec.label_flip_cost,
        n * penalty,
        spec.transport_norm,
        n,
    )
