"""SQLAlchemy tables and repositories of the metadata of runs."""
