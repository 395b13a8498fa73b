"""Losses of a linear model, one a file, each with value, subgradient and Lipschitz constant."""
