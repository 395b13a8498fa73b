"""CVXPY formulations: the solver of polytopes, and what the tests' oracle builds on."""
