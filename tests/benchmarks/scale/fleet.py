"""Many plants that answer in sums: real local solves on small drawn tables, some of which stand for several plants.

A cohort has ``kinds`` unlike plants; where it has more, each stands for some with the same rows, whose answers are the
same. Their words are counted as often as they stand there, exactly, so that the sums are those of all plants.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from models.basics import Arrays
from models.cohorts.dealing import Cohorts
from models.cohorts.fixed_point import asked_points, to_words
from models.cohorts.sums import CohortSum, cohort_answers
from models.methods.protocol import Method
from models.methods.row_account import accounted_remembering
from models.problem import RobustSpec, ServerProblem, SiteProblem, SiteTerms

FEATURES, ROWS = 20, 40
RADIUS = 1.0 / (10 * ROWS)


@dataclass
class Fleet:
    """Plants of equal weight in cohorts, and the seconds of every local solve of the last round."""

    cohorts: Cohorts
    kinds: Mapping[str, tuple[str, ...]]
    sites: Mapping[str, SiteProblem]
    solves: list[float] = field(default_factory=list)
    memories: dict[str, Arrays] = field(default_factory=dict)

    @classmethod
    def drawn(cls, plants: int, cohort: int, kinds: int, seed: int = 0) -> Fleet:
        """Cohorts of ``cohort`` plants or up to twice that less one, each with ``kinds`` unlike ones at most."""
        parts = np.array_split(np.arange(plants), max(plants // cohort, 1))
        cohorts = {f"cohort-{k:04d}": tuple(f"plant-{g:05d}" for g in part) for k, part in enumerate(parts)}
        chosen = {name: members[:kinds] for name, members in cohorts.items()}
        random = np.random.default_rng(seed)
        apart = random.normal(size=FEATURES) / np.sqrt(FEATURES)
        names = [site for members in chosen.values() for site in members]
        return cls(cohorts, chosen, {site: _plant(random, apart) for site in names})

    @property
    def problem(self) -> ServerProblem:
        """The plants' problem, of equal weights."""
        names = [site for members in self.cohorts.values() for site in members]
        terms = tuple(SiteTerms(name, 1.0 / len(names), RADIUS, 1.0) for name in names)
        return ServerProblem(FEATURES, terms, "l2", True, gap=1e-3)

    def answers(
        self, method: Method, problem: ServerProblem, messages: Mapping[str, Arrays],
        shapes: Mapping[str, tuple[int, ...]],
    ) -> dict[str, Arrays]:
        """Answers by cohort, of which all plants are there; ``problem`` has the method's parameters."""
        self.solves, sums = [], {}
        for cohort, members in self.cohorts.items():
            kinds, message = self.kinds[cohort], messages[cohort]
            total = np.zeros(1, dtype=np.uint64)
            for place, site in enumerate(kinds):
                began = time.process_time()
                found, self.memories[site] = accounted_remembering(
                    method.site, self.sites[site], message, problem.parameters, self.memories.get(site, {})
                )
                words = to_words(found.arrays, 1.0 / len(members), asked_points(message))
                self.solves.append(time.process_time() - began)
                total = total + words * np.uint64(len(range(place, len(members), len(kinds))))
            sums[cohort] = CohortSum(total, True, members)
        return cohort_answers(method, sums, shapes)


def _plant(random: np.random.Generator, apart: np.ndarray[tuple[int], np.dtype[np.float64]]) -> SiteProblem:
    """A plant whose two classes overlap, with a shift of its own."""
    labels = np.where(random.random(ROWS) < 0.5, 1.0, -1.0)
    centre = 0.3 * random.normal(size=FEATURES) / np.sqrt(FEATURES)
    table = labels[:, None] * apart + centre + random.normal(size=(ROWS, FEATURES)) / np.sqrt(FEATURES)
    return SiteProblem(table, labels, RobustSpec(RADIUS, 1.0))
