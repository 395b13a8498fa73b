"""What may be asked and told: questions, work, steps of figures, lifts, kinds of answers."""
