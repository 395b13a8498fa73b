"""Alembic migrations of the round store, run from code: no ini file is needed."""
