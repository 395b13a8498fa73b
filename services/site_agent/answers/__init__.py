"""What is computed for a task of a site's rows: joins, rounds, tunings, held-out scores."""
