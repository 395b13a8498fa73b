"""The client step of ADMM and of the prox cuts, one solver a file."""

from models.prox.hinge.select import robust_prox

__all__ = ["robust_prox"]
