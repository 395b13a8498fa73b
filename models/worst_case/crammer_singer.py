"""The Crammer-Singer risk (``models.worst_case.joint_risk``) at planes of all classes, with its cut."""

from __future__ import annotations

import numpy as np

from models.basics import FloatArray
from models.problem import SiteProblem
from models.worst_case.joint_risk import class_planes, risk_of_planes
from models.worst_case.risk import RiskCut


def crammer_singer_cut(weights: FloatArray, problem: SiteProblem, n_classes: int) -> RiskCut:
    """Exact worst-case risk at weights (D,), and the cut that it gives; the labels of ``problem`` are class indices."""
    spec = problem.spec
    planes = class_planes(weights, n_classes, problem.features.shape[1], spec.fit_intercept)
    value, _, gradient, _ = risk_of_planes(planes, problem)
    slope = gradient[:, :-1].ravel()
    return RiskCut(value, value, np.append(slope, gradient[:, -1]) if spec.fit_intercept else slope, 0.0)
