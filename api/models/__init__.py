"""Model versions: diagnosis and estimation, reports, fairness, promotion."""
