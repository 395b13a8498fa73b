"""Condition indicators of a signal, and lifts of features."""
