"""Sums of plants' answers that show no single answer: secure aggregation without a network."""
