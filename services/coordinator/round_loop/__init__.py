"""The rounds: on single answers, on sums over cohorts, and those that wait for nobody."""
