"""The client step of ADMM and of the prox cuts, one solver a file."""
