"""Model versions in MLflow, as plain arrays and JSON."""
