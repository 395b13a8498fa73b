"""Kinds of machines."""
