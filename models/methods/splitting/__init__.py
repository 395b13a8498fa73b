"""Splitting and subgradient methods of the FDR-SVM and DRFL papers."""
