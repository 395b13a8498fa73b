"""Drives training rounds across the sites and decides what is let into a model."""
