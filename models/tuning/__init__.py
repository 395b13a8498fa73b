"""Choosing the terms of a robust problem by cross-validation inside the vaults, for the price of a few trainings."""
