"""Cohorts whose sums contradict themselves: which plant it was, found by an auditor to whom two rounds are opened."""
