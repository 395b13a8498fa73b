"""Rounds over plants in cohorts, in one process: the plants' memories, and their answers in sums alone."""

from __future__ import annotations

from collections.abc import Container, Mapping

import numpy as np

from models.basics import Arrays
from models.cohorts.dealing import Cohorts, cohort_shares
from models.cohorts.fixed_point import Words, asked_points, to_words, word_count
from models.cohorts.sums import CohortSum, check_on_sums, cohort_answers
from models.methods.guard import Guard
from models.methods.protocol import Method, SiteHalf
from models.methods.row_account import accounted_remembering
from models.problem import ServerProblem, SiteProblem


class CohortRounds:
    """Plants that answer in sums. ``problem`` is that of the plants; the server half's has cohorts for sites.

    ``memories`` are the plants' own: to lose one is what a restart does. ``guards`` are theirs too.
    """

    def __init__(
        self, method: Method, sites: Mapping[str, SiteProblem], problem: ServerProblem, cohorts: Cohorts,
        half: SiteHalf | None = None, guards: Mapping[str, Guard] | None = None,
    ) -> None:
        check_on_sums(method)
        self._method, self._half, self._sites, self._cohorts = method, half or method.site, sites, cohorts
        self._guards = guards or {}
        self._parameters, self._shares = problem.parameters, cohort_shares(problem, cohorts)
        self.memories: dict[str, Arrays] = {site: {} for site in sites}

    def answers(
        self, messages: Mapping[str, Arrays], shapes: Mapping[str, tuple[int, ...]], absent: Container[str] = ()
    ) -> dict[str, Arrays]:
        """Answers by cohort to messages by cohort; plants that are absent are missing from the sums."""
        sums = {}
        for cohort, members in self._cohorts.items():
            words = [self._words(site, messages[cohort]) for site in members if site not in absent]
            if words:
                sums[cohort] = CohortSum(np.add.reduce(words), len(words) == len(members))
        return cohort_answers(self._method, sums, shapes)

    def _words(self, site: str, message: Arrays) -> Words:
        found, self.memories[site] = accounted_remembering(
            self._half, self._sites[site], message, self._parameters, self.memories[site], self._guards.get(site)
        )
        return to_words(found.arrays, self._shares[site], asked_points(message))


def bytes_of_words(shapes: Mapping[str, tuple[int, ...]]) -> int:
    """Bytes that a plant sends for an answer of these shapes, without framing."""
    return 8 * word_count(shapes)
