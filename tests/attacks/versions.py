"""Two honest runs between which a row came to one plant: what differences of answers about both versions give away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from models.basics import FloatArray
from models.problem import SiteProblem
from tests.attacks import finding
from tests.attacks.gated_plants import Plant, honest_run, stacked


def found_between(
    sites: Mapping[str, SiteProblem], name: str, mode: str, draw: int = 0, max_rounds: int = 12
) -> tuple[set[int], list[Plant]]:
    """Rows found, and the plants of the second run. The first plant lacks its last row in the first run.

    Answers are held to one another times the number of rows, which a coordinator knows: by pairs of all, and
    differences of pairs of the latest of both runs, of the first plant or of the sums.
    """
    first = min(sites)
    whole = sites[first]
    before = {site: Plant(problem, draw=draw) for site, problem in sites.items()}
    before[first] = Plant(replace(whole, features=whole.features[:-1], labels=whole.labels[:-1]), draw=draw)
    cohorts = {"all": tuple(sites)} if mode == "sum" else None
    honest_run(before, name, cohorts=cohorts, max_rounds=max_rounds)
    after = {site: Plant(problem, draw=draw) for site, problem in sites.items()}
    for site, plant in after.items():
        plant.gate = before[site].gate
    honest_run(after, name, cohorts=cohorts, run="run-2", max_rounds=max_rounds)
    seen = sorted(sites) if mode == "sum" else [first]
    one, other = (_scaled([plants[site] for site in seen]) for plants in (before, after))
    rows = np.vstack([after[site].rows for site in seen])
    if not len(one) or not len(other):
        return set(), list(after.values())
    found = finding.rows_along((other[:, None] - one[None]).reshape(-1, one.shape[1]), rows)
    earlier, later = (finding.pairs_of(each[-finding.LATEST :]) for each in (one, other[: finding.LATEST]))
    for each in later:
        found |= finding.rows_along(np.vstack([each - earlier, each + earlier]), rows)
    return found, list(after.values())


def _scaled(plants: list[Plant]) -> FloatArray:
    """Every vector of the sums over plants, each times its number of rows, (M, D)."""
    complete = min(len(plant.sent) for plant in plants)
    return stacked([
        [{key: len(plant.part) * value for key, value in answer.items()} for answer in plant.sent[:complete]]
        for plant in plants
    ])
