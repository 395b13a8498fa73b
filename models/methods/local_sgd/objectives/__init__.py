"""What local gradient steps descend on: the mean loss of a model with its gradient, one model a file."""
