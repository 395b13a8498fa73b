"""Addresses of the console."""
