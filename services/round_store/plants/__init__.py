"""Repositories of the plants, and of those that left."""
