"""Reports of a run and of a model version."""
