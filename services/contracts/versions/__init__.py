"""A model version, what readers see of it, and its report."""
