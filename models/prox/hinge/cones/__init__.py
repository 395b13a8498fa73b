"""The norm constraint ``multiplier >= ||w||_*`` in the interior point, one class a norm."""

from models.problem import TransportNorm
from models.prox.cones.cone import NormCone
from models.prox.cones.euclidean import EuclideanCone
from models.prox.cones.max_norm import MaxNormCone
from models.prox.cones.sum_norm import SumNormCone

CONES: dict[TransportNorm, type[NormCone]] = {"l1": MaxNormCone, "l2": EuclideanCone, "linf": SumNormCone}

__all__ = ["CONES", "NormCone"]
