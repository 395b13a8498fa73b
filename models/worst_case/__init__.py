"""Exact worst-case risk over a Wasserstein ball around a site's rows, its subgradient, and the worst distribution."""

from models.worst_case.distribution import worst_case_atoms
from models.worst_case.risk import worst_case_risk

__all__ = ["worst_case_atoms", "worst_case_risk"]
