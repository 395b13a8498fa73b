"""Where a training in one process ended, so that a later one over much the same sites goes on from there."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from models.cohorts.dealing import Cohorts, cohort_problem, cohort_shares
from models.cohorts.regrouping import kept_cohorts
from models.features.common_units import CommonUnits
from models.methods.protocol import ServerHalf, StartsWarm
from models.problem import ServerProblem


@dataclass(frozen=True)
class Ended:
    """State of the server half, the problem of the sites (in these units), and the cohorts, None: single answers."""

    state: Any
    problem: ServerProblem
    cohorts: Cohorts | None
    units: CommonUnits

    def goes_on(
        self, server: ServerHalf[Any], problem: ServerProblem, single: ServerProblem, cohorts: Cohorts | None,
        unchanged: Collection[str],
    ) -> Any:
        """State at the start of a run on ``problem``, that of cohorts or of the ``single`` sites.

        Nothing is taken over by a method that starts cold, of another size of model, or from single answers to sums.
        """
        alike = single.dimension == self.problem.dimension and (cohorts is None) == (self.cohorts is None)
        if not (alike and isinstance(server, StartsWarm)):
            return server.init(problem)
        terms = {site.site_id: (site.radius, site.label_flip_cost) for site in self.problem.sites}
        same = {
            site.site_id for site in single.sites
            if site.site_id in unchanged and terms.get(site.site_id) == (site.radius, site.label_flip_cost)
        }
        if cohorts is None or self.cohorts is None:
            places = {site.site_id: place for place, site in enumerate(self.problem.sites)}
            kept = [places[site.site_id] if site.site_id in same else -1 for site in single.sites]
            return server.warm(self.state, self.problem, problem, kept)
        shares, now = cohort_shares(self.problem, self.cohorts), cohort_shares(single, cohorts)
        kept = kept_cohorts(self.cohorts, shares, cohorts, now, same)
        return server.warm(self.state, cohort_problem(self.problem, self.cohorts), problem, kept)
