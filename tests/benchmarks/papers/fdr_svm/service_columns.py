"""Two columns of Ballast itself, by the service's own method and terms: a plan as it comes, and one that tunes itself.

Both train by ``cohort-bundle``, the method of a plan that names none, over the four sites in one cohort, to the plan's
gap in at most the plan's rounds; every number is read from the plan's own defaults. Features are scaled to [0, 1] by
the training rows, which stand for the sensor ranges of a contract (the pump has ranges of its own); a test row outside
of them is clipped, as the predictor clips it.

The second column has ``tuning = "auto"``: its candidates are those of ``models.tuning.automatic``, nothing here adds
to them or takes from them, and they race over folds inside the sites. The estimator drives the same halves as the
service does, without a network.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from models.estimators import FederatedDRClassifier
from services.contracts.plans.plan import Plan
from tests.benchmarks.papers.fdr_svm.choice import Cell, Grid, judge
from tests.benchmarks.papers.fdr_svm.uci import Split, scaled

AS_IT_COMES, TUNES_ITSELF = "Ballast, plan as it comes", "Ballast, tuning auto"


def service(tuning: str | None) -> Callable[[Split, Grid], Cell]:
    """Column of a plan that says nothing but, perhaps, ``tuning``; the paper's grid is of no use to it."""

    def column(data: Split, grid: Grid) -> Cell:
        began, data = time.perf_counter(), scaled(data, by_sensor=True)
        plan = Plan(name="plan", asset_type="table")
        sizes = zip(*np.unique(data.site, return_counts=True), strict=True)
        radii = {site: 1.0 / (plan.spec.radius.value * count) for site, count in sizes}
        model = FederatedDRClassifier(
            radius=radii, label_flip_cost=plan.spec.label_flip_cost, transport_norm=plan.spec.transport_norm,
            method=plan.method, gap=plan.gap, max_rounds=plan.max_rounds, client_weights="uniform", tuning=tuning,
            random_state=0, calibration_folds=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(np.clip(data.features, 0.0, 1.0), data.labels, groups=data.site)
        scores = model.decision_function(np.clip(data.test_features, 0.0, 1.0))
        said = {"rounds": int(model.n_rounds_), "tuning_rounds": int(getattr(model, "tuning_rounds_", 0))}
        why = {} if tuning is None else {"why": str(model.tuning_why_)}
        return judge(data, scores, float(model.certified_gap_), began, said | why)

    return column


SERVICE = {AS_IT_COMES: service(None), TUNES_ITSELF: service("auto")}
