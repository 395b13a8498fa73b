r"""Which plants are summed with which, and the problem that a server half then sees: cohorts where plants were.

The mean risk of cohort c is ``r_c = sum_{g in c} a_g r_g / A_c`` with ``A_c = sum_{g in c} a_g``, so that
``sum_c A_c r_c = sum_g a_g r_g``: with fixed weights the two problems are one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from models.basics import ProblemError
from models.problem import REACH, ServerProblem, SiteTerms
from models.site_ambiguity.ball import MixtureBall

LEAST_COHORT: Final = 3
"""Of a sum over two, either plant could take off its own part and see the other's."""

Cohorts = Mapping[str, tuple[str, ...]]
"""Plants by cohort; every plant is in one cohort."""


def deal(site_ids: Sequence[str], size: int = LEAST_COHORT, seed: int = 0) -> dict[str, tuple[str, ...]]:
    """Deal plants into cohorts of ``size`` to ``2 size - 1``, by chance; the seed decides.

    Raises
    ------
    ProblemError
        ``size`` is below 3, or there are fewer plants.
    """
    if size < LEAST_COHORT:
        raise ProblemError(f"a cohort has at least {LEAST_COHORT} plants, got {size}")
    if len(site_ids) < size:
        raise ProblemError(f"a cohort of {size} plants needs as many, there are {len(site_ids)}")
    dealt = np.random.default_rng(seed).permutation(sorted(site_ids))
    parts = np.array_split(dealt, len(site_ids) // size)
    return {f"cohort-{k}": tuple(sorted(str(site) for site in part)) for k, part in enumerate(parts, 1)}


def without(cohorts: Cohorts, gone: Collection[str], size: int = LEAST_COHORT) -> dict[str, tuple[str, ...]]:
    """The cohorts after some plants left for good; what falls below ``size`` joins the smallest of the others.

    Raises
    ------
    ProblemError
        Fewer than ``size`` plants are left.
    """
    left = {name: tuple(site for site in members if site not in gone) for name, members in cohorts.items()}
    count = sum(len(members) for members in left.values())
    if count < size:
        raise ProblemError(f"a cohort of {size} plants needs as many, {count} are left")
    while small := [name for name in sorted(left) if len(left[name]) < size]:
        members = left.pop(small[0])
        if members:
            smallest = min(sorted(left), key=lambda name: len(left[name]))
            left[smallest] = tuple(sorted(left[smallest] + members))
    return left


def check_cohorts(cohorts: Cohorts, site_ids: Sequence[str], mixture: MixtureBall) -> None:
    """Refuse cohorts of the plants that hide too little, or that do not go with the ball over the plants.

    Raises
    ------
    ProblemError
        A plant in none or in two, a cohort of fewer than 3, or a ball over the plants with a radius above 0.
    """
    members = [site for cohort in cohorts.values() for site in cohort]
    if sorted(members) != sorted(site_ids):
        odd = sorted({site for site in {*members, *site_ids} if members.count(site) != 1 or site not in site_ids})
        raise ProblemError(f"every plant of the problem must be in one cohort, and no other; see {odd[0]}")
    small = [name for name, cohort in cohorts.items() if len(cohort) < LEAST_COHORT]
    if small:
        raise ProblemError(
            f"a cohort has at least {LEAST_COHORT} plants, {small[0]} has {len(cohorts[small[0]])}: join it to another"
        )
    check_fixed_mixture(mixture)


def check_fixed_mixture(mixture: MixtureBall) -> None:
    """Refuse a ball over the plants with a radius above 0, whose worst mixture follows from single risks.

    :class:`ProblemError` says what may be set instead.
    """
    if mixture.radius > 0:
        raise ProblemError(
            f"a ball over the plants (radius {mixture.radius:g}) needs the answer of each plant, and sums hide it: set "
            'reveal = "each site", or the radius over the sites to 0'
        )


def cohort_problem(problem: ServerProblem, cohorts: Cohorts) -> ServerProblem:
    """The problem with cohorts for sites; radius and flip cost are those that the plants have on the mean."""
    check_cohorts(cohorts, [site.site_id for site in problem.sites], problem.mixture)
    terms, shares = {site.site_id: site for site in problem.sites}, cohort_shares(problem, cohorts)
    sites = tuple(
        SiteTerms(
            name,
            sum(terms[site].weight for site in members),
            sum(shares[site] * terms[site].radius for site in members),
            sum(shares[site] * terms[site].label_flip_cost for site in members if shares[site] > 0),
        )
        for name, members in cohorts.items()
    )
    return replace(problem, sites=sites, reach=REACH)


def cohort_shares(problem: ServerProblem, cohorts: Cohorts) -> dict[str, float]:
    """Share ``a_g / A_c`` of each plant in its cohort; alike where the whole cohort has weight 0."""
    weights = {site.site_id: site.weight for site in problem.sites}
    shares: dict[str, float] = {}
    for members in cohorts.values():
        whole = sum(weights[site] for site in members)
        shares |= {site: weights[site] / whole if whole > 0 else 1.0 / len(members) for site in members}
    return shares
