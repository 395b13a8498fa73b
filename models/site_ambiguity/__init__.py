"""The ball of mixtures around the site weights: its worst member, its epigraph, the projection on it."""
