"""The norm constraint ``multiplier >= ||w||_*`` in the interior point, one class a norm."""

from models.basics import TransportNorm
from models.prox.hinge.cones.cone import NormCone
from models.prox.hinge.cones.euclidean import EuclideanCone
from models.prox.hinge.cones.max_norm import MaxNormCone
from models.prox.hinge.cones.sum_norm import SumNormCone

CONES: dict[TransportNorm, type[NormCone]] = {"l1": MaxNormCone, "l2": EuclideanCone, "linf": SumNormCone}

__all__ = ["CONES", "NormCone"]
