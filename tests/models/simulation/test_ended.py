"""From where a later training goes on: sites that are the same function, by rows, terms, shares and cohorts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from models.cohorts.dealing import Cohorts, cohort_problem
from models.features.common_units import CommonUnits
from models.problem import ServerProblem, SiteTerms
from models.simulation.ended import Ended

NAMES = tuple("abcdef")
COHORTS: Cohorts = {"one": ("a", "b", "c"), "two": ("d", "e", "f")}


class Warm:
    """A server half that notes from what it was started."""

    def init(self, problem: ServerProblem) -> Any:
        return "cold"

    def warm(self, earlier: Any, before: ServerProblem, problem: ServerProblem, kept: Sequence[int]) -> Any:
        return earlier, [site.site_id for site in before.sites], [site.site_id for site in problem.sites], list(kept)

    def forget_earlier(self, state: Any, site: int) -> Any:
        return state


class Cold:
    """A server half that starts with nothing."""

    def init(self, problem: ServerProblem) -> Any:
        return "cold"


def problem_of(names: Sequence[str], **changed: SiteTerms) -> ServerProblem:
    terms = tuple(changed.get(name, SiteTerms(name, 1 / len(names), 0.1, 1.0)) for name in names)
    return ServerProblem(3, terms, "l2", True)


def ended(cohorts: Cohorts | None = None) -> Ended:
    return Ended("state", problem_of(NAMES), cohorts, CommonUnits())


def test_each_site_is_found_at_its_place_of_before() -> None:
    """A new one has none, nor one whose rows, radius or flip cost changed; its weight is no part of its risk."""
    names = ("f", "new", "a", "b", "c", "d", "e")
    now = problem_of(
        names, a=SiteTerms("a", 1 / 7, 0.2, 1.0), b=SiteTerms("b", 1 / 7, 0.1, 2.0), c=SiteTerms("c", 1 / 7, 0.1, 1.0)
    )
    found = ended().goes_on(Warm(), now, now, None, {*names} - {"d"})
    assert found == ("state", list(NAMES), list(names), [5, -1, -1, -1, 2, -1, 4])


def test_a_cohort_goes_on_where_all_its_plants_and_their_shares_are_the_same() -> None:
    single = problem_of(NAMES)
    swapped = {"first": ("d", "e", "f"), "second": ("a", "b", "c")}
    for cohorts, unchanged, kept in (
        (COHORTS, NAMES, [0, 1]), (swapped, NAMES, [1, 0]), (COHORTS, "abcdf", [0, -1]),
        ({"one": ("a", "b", "d"), "two": ("c", "e", "f")}, NAMES, [-1, -1]),
    ):
        found = ended(COHORTS).goes_on(Warm(), cohort_problem(single, cohorts), single, cohorts, set(unchanged))
        assert found == ("state", ["one", "two"], list(cohorts), kept)
    more = problem_of([*NAMES, "x", "y", "z"])
    dealt = {"new": ("x", "y", "z"), "two": COHORTS["two"], "one": COHORTS["one"]}
    found = ended(COHORTS).goes_on(Warm(), cohort_problem(more, dealt), more, dealt, set(NAMES))
    assert found[3] == [-1, 1, 0]
    # Weights that move within a cohort change its mean; those of whole cohorts do not.
    uneven = [0.1, 0.2, 1 / 6, 1 / 6, 1 / 6, 1 / 5]
    for weights, kept in ((uneven, [-1, -1]), ([0.1] * 3 + [0.7 / 3] * 3, [0, 1])):
        terms = tuple(SiteTerms(name, weight, 0.1, 1.0) for name, weight in zip(NAMES, weights, strict=True))
        now = replace(single, sites=terms)
        found = ended(COHORTS).goes_on(Warm(), cohort_problem(now, COHORTS), now, COHORTS, set(NAMES))
        assert found[3] == kept


@pytest.mark.parametrize("place", ["method", "size", "sums", "single"])
def test_nothing_is_taken_over_where_the_states_are_not_alike(place: str) -> None:
    """A method that starts cold, a model of another size, from single answers to sums and back."""
    single = problem_of(NAMES)
    now, given, cohorts = single, ended(), None
    server: Any = Cold() if place == "method" else Warm()
    if place == "size":
        single = now = replace(single, n_features=4)
    if place == "sums":
        now, cohorts = cohort_problem(single, COHORTS), COHORTS
    if place == "single":
        given = ended(COHORTS)
    assert given.goes_on(server, now, single, cohorts, set(NAMES)) == "cold"
    assert ended().goes_on(Warm(), problem_of(NAMES), problem_of(NAMES), None, set(NAMES)) != "cold"
