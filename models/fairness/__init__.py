"""Fairness over the sites: indices, relative fairness, its ambiguity set, dual step and bounds."""

from models.fairness.indices import (
    atkinson,
    fairness_discrepancy,
    get_index,
    gini,
    lorenz_curve,
    palma,
    relative_unfairness,
    skewness,
    transformed_lorenz_curve,
    twenty_twenty,
    unfairness_over,
    worst_share,
)

__all__ = [
    "atkinson",
    "fairness_discrepancy",
    "get_index",
    "gini",
    "lorenz_curve",
    "palma",
    "relative_unfairness",
    "skewness",
    "transformed_lorenz_curve",
    "twenty_twenty",
    "unfairness_over",
    "worst_share",
]
