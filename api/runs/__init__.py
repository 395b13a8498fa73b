"""Runs of plans and their rounds."""
