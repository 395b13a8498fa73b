"""What plants count of held-out rows, and what it makes: scores, fairness, sets, intervals, diagnoses."""
