"""Coverage and width of a plan's sets and intervals, with the service's own counts and answers.

A vault calibrates on held-out rows, which here are the test rows. So those of each plant are halved: what the counts of
one half promise is held to the rows of the other, and the other way round; no row is judged by a promise that it made.
On sums the counts of all plants are one sum, as a coordinator sees it; else each plant tells its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from models.basics import Arrays, FloatArray
from models.conformal.scores import class_scores, class_sets
from models.multiclass import predict_scores
from services.contracts.evaluation.calibration import Calibration
from services.contracts.history.run import Run
from services.contracts.machines.asset_type import AssetType
from services.coordinator.ending.calibration import calibration, kind_of
from services.site_agent.answers.local_scores import calibration_counts, spread_counts
from services.site_agent.answers.local_solve import lifted, site_problems
from services.site_agent.rules.policy import SitePolicy
from tests.benchmarks.accuracy.deal import PLANTS, Part


def coverage_and_width(
    run: Run, weights: FloatArray, train: Part, test: Part, asset_type: AssetType
) -> tuple[float | None, float | None]:
    """Share of the test rows in their set or interval, and its mean size, in classes or in units of the target.

    ``train`` and ``test`` have scaled features (n, P), and class indices or scaled targets (n,), as a vault makes them.
    None where a plan's coverage takes more held-out rows than there are.
    """
    halves = _halves(test)
    inside, sizes = np.zeros(len(test.outcomes), dtype=bool), np.zeros(len(test.outcomes))
    for half in (0, 1):
        found = _calibrated(run, weights, train, test.chosen(halves != half), asset_type)
        if found.lacks(found.coverage):
            return None, None
        here = halves == half
        inside[here], sizes[here] = _answered(run, weights, found, test.chosen(here), asset_type)
    return float(inside.mean()), float(sizes.mean())


def _halves(test: Part) -> NDArray[np.intp]:
    """Half of each row, drawn by a fixed seed, as many of each plant in the one as in the other."""
    draw, halves = np.random.default_rng(5), np.zeros(len(test.outcomes), dtype=np.intp)
    for plant in range(PLANTS):
        own = draw.permutation(np.flatnonzero(test.plants == plant))
        halves[own[1::2]] = 1
    return halves


def _calibrated(run: Run, weights: FloatArray, train: Part, held: Part, asset_type: AssetType) -> Calibration:
    """What the counts of ``held`` promise, as the coordinator of ``run`` makes it of them."""
    plants = {site.site_id: int(site.site_id.removeprefix("plant-")) - 1 for site in run.members}
    sites = list(plants)
    told = {
        site: _counts(run, weights, train.of(number), held.of(number), asset_type) for site, number in plants.items()
    }
    if run.plan.reveal != "sums":
        return calibration(run, told, {site: (site,) for site in sites})
    return calibration(run, {"all": _sum(list(told.values()))}, {"all": tuple(sites)})


def _sum(told: Sequence[Arrays]) -> Arrays:
    return {name: np.sum([each[name] for each in told], axis=0) for name in told[0]}


def _counts(run: Run, weights: FloatArray, train: Part, held: Part, asset_type: AssetType) -> Arrays:
    spec, task = run.plan.spec, run.plan.spec.loss.task
    features = lifted(spec, held.features)
    told = calibration_counts(weights, features, held.features, held.outcomes, task)
    if kind_of(run.plan) != "spread":
        return told
    problem = site_problems(spec, lifted(spec, train.features), train.outcomes, asset_type)[0]
    return told | spread_counts(weights, features, held.outcomes, problem, SitePolicy().min_samples)


def _answered(
    run: Run, weights: FloatArray, found: Calibration, asked: Part, asset_type: AssetType
) -> tuple[NDArray[np.bool_], FloatArray]:
    """Whether each row is in what its answer says, and how large that is."""
    heads = predict_scores(weights, lifted(run.plan.spec, asked.features))
    if asset_type.target is None:
        sets = class_sets(class_scores(heads), found.threshold(found.coverage))
        return sets[np.arange(len(sets)), asked.outcomes.astype(np.intp)], sets.sum(axis=1).astype(np.float64)
    goal = asset_type.target
    ends = np.clip(goal.unscale(found.interval(found.coverage, heads[:, 0])), goal.low, goal.high)
    targets = goal.unscale(asked.outcomes)
    return (ends[0] <= targets) & (targets <= ends[1]), ends[1] - ends[0]
