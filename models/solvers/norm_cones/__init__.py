"""The norm constraint ``multiplier >= ||w||_*`` in an interior point, one class a norm."""

from models.basics import TransportNorm
from models.solvers.norm_cones.cone import NormCone
from models.solvers.norm_cones.euclidean import EuclideanCone
from models.solvers.norm_cones.polyhedral import MaxNormCone, SumNormCone

CONES: dict[TransportNorm, type[NormCone]] = {"l1": MaxNormCone, "l2": EuclideanCone, "linf": SumNormCone}

__all__ = ["CONES", "NormCone"]
