"""Plans: what is trained, on which schedule, behind which gates; their changes and overrides."""
