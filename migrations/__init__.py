"""Alembic migrations of the round store."""
