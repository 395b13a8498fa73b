"""Loads a model version and diagnoses measurements with it."""
