"""Repositories of plans and asset types."""
