"""Norms, projections, and the sets that features, targets and mixtures live in."""
