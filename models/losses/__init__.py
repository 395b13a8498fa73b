"""Losses of a linear model, each with value, subgradient and Lipschitz constant."""
