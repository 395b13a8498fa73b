"""Answers with a stated coverage: sets of classes and intervals whose errors are counted on held-out rows."""
