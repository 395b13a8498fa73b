r"""A prox cut where no fast prox solver fits: a proximal bundle at the site itself.

    min_w r(w) + penalty/2 ||w - centre||^2

is solved roughly by cutting planes of r (exact worst-case risks, no message), as a site with a box support does. The
minorant is the mixture of the cuts that made the last step, so it bounds r from below however rough the step is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.cut_model import CutModel, prox_step
from models.problem import FloatArray, SiteProblem
from models.worst_case import RiskCut, site_cut

MAX_STEPS = 12
CLOSE = 0.05
"""Share of the predicted decrease that the model may be wrong by at the last step."""


def local_minorant(problem: SiteProblem, centre: FloatArray, penalty: float) -> tuple[float, FloatArray]:
    """Offset and slope (D,) of an affine minorant of the risk, near-tight at the prox point of ``centre``."""
    cuts = [_Cut.at(centre, site_cut(centre, problem))]
    start = cuts[0].risk
    for _ in range(MAX_STEPS):
        model = _model(cuts, problem)
        step = prox_step(model, centre, penalty)
        predicted = model.value(step.point)
        mixture = step.multipliers / max(1.0, float(step.multipliers.sum()))
        cut = _Cut.at(step.point, site_cut(step.point, problem))
        if cut.risk - predicted <= CLOSE * max(start - predicted, 0.0):
            break
        cuts.append(cut)
    return float(mixture @ model.offset), np.asarray(mixture @ model.slope)


@dataclass(frozen=True)
class _Cut:
    risk: float
    offset: float
    slope: FloatArray

    @staticmethod
    def at(point: FloatArray, cut: RiskCut) -> _Cut:
        return _Cut(cut.value, cut.value - float(cut.slope @ point), cut.slope)


def _model(cuts: list[_Cut], problem: SiteProblem) -> CutModel:
    count = len(cuts)
    return CutModel(
        shares=np.ones(1),
        floor=np.zeros(1),
        site=np.zeros(count, dtype=np.intp),
        offset=np.array([cut.offset for cut in cuts]),
        slope=np.stack([cut.slope for cut in cuts]),
        norm_weight=np.zeros(count),
        transport_norm=problem.spec.transport_norm,
        n_features=problem.features.shape[1],
    )
