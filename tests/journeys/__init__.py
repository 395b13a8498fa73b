"""Journeys through the whole service: one package, whose servers stop when its last test has run."""
