"""CVXPY formulations: the oracle of the tests and the fallback."""
