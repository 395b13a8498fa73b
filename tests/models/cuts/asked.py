"""Cut models of sites that were asked at some points."""

from __future__ import annotations

import numpy as np

from models.cuts.cut_model import CutModel
from models.geometry.norms import DUAL_NORM, vector_norm
from models.problem import SiteProblem
from models.worst_case.risk import site_cut


def model_of(sites: dict[str, SiteProblem], points: np.ndarray) -> CutModel:
    """The cut model of exact cuts of all sites at points (K, D)."""
    problems = list(sites.values())
    spec, p = problems[0].spec, problems[0].features.shape[1]
    site, offset, slope, norm_weight, swing = [], [], [], [], []
    for point in points:
        norm = float(vector_norm(point[:p], DUAL_NORM[spec.transport_norm]))
        for g, problem in enumerate(problems):
            cut = site_cut(point, problem)
            site.append(g)
            offset.append(cut.offset(point, norm))
            slope.append(cut.slope)
            norm_weight.append(cut.norm_weight)
            swing.append(np.zeros(p) if cut.swing is None else cut.swing)
    floor = np.zeros(len(problems))
    np.maximum.at(floor, np.array(site), np.array(norm_weight))
    site_weights = np.full(len(problems), 1 / len(problems))
    return CutModel(
        site_weights, floor, np.array(site), np.array(offset), np.array(slope), np.array(norm_weight),
        spec.transport_norm, p, swing=np.array(swing),
    )
