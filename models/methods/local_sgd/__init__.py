"""Methods of local gradient steps: one site half, and a rule for each method."""
