"""Figures of a trained model: scores, intervals, robustness radius."""
