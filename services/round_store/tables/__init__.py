"""All tables and their columns."""
