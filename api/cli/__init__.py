"""The command ballast."""
