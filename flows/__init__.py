"""Prefect flows; they put the services together."""
