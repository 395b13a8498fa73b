"""The round loop over sites that are in one process, without a network."""

from models.simulation.federation import Training, train

__all__ = ["Training", "train"]
