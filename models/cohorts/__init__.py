"""Cohorts of plants whose answers are seen in sums alone: who is in which, and sums of whole numbers."""
