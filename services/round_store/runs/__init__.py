"""Repositories of runs, their rounds and state, and the versions that come out."""
