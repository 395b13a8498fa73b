"""Who is summed with whom."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.basics import ProblemError
from models.cohorts.dealing import cohort_problem, cohort_shares, deal, without
from models.cohorts.noise import row_share
from models.cohorts.sums import check_on_sums
from models.methods.catalogue import METHODS, get_method
from models.problem import ServerProblem, SiteProblem, SiteTerms
from models.simulation.federation import train
from models.site_ambiguity.ball import MixtureBall

FIXED = MixtureBall()


def problem(weights: list[float], mixture: MixtureBall = FIXED) -> ServerProblem:
    sites = tuple(SiteTerms(f"s{g}", weight, 0.01 * (g + 1), 1.0) for g, weight in enumerate(weights))
    return ServerProblem(2, sites, "l2", True, mixture=mixture)


@given(st.integers(3, 60), st.integers(3, 9), st.integers(0, 2**32))
def test_everybody_is_dealt_once_into_cohorts_of_the_size_asked(plants: int, size: int, seed: int) -> None:
    names = [f"p{k}" for k in range(plants)]
    if plants < size:
        with pytest.raises(ProblemError, match=f"needs as many, there are {plants}"):
            deal(names, size, seed)
        return
    cohorts = deal(names, size, seed)
    assert sorted(site for cohort in cohorts.values() for site in cohort) == sorted(names)
    assert all(size <= len(cohort) < 2 * size for cohort in cohorts.values())
    assert cohorts == deal(names[::-1], size, seed)


@given(st.integers(6, 24), st.integers(0, 24), st.integers(3, 6), st.integers(0, 2**32))
def test_who_is_left_is_in_one_cohort_as_long_as_there_is_one(plants: int, leave: int, size: int, seed: int) -> None:
    """The last cohort may have just as many as it must."""
    names = [f"p{k}" for k in range(plants)]
    gone = np.random.default_rng(seed).permutation(names)[:leave]
    left, before = sorted({*names} - {*gone}), deal(names, size, seed)
    if len(left) < size:
        with pytest.raises(ProblemError, match=f"a cohort of {size} plants needs as many, {len(left)} are left"):
            without(before, gone, size)
        return
    after = without(before, gone, size)
    assert sorted(site for members in after.values() for site in members) == left
    assert all(len(members) >= size for members in after.values()) and after.keys() <= before.keys()


def test_the_seed_deals() -> None:
    names = [f"p{k}" for k in range(12)]
    assert deal(names, 3, 1) != deal(names, 3, 2)
    with pytest.raises(ProblemError, match="a cohort has at least 3 plants, got 2"):
        deal(names, 2)


def test_the_problem_of_the_cohorts_has_the_same_weight() -> None:
    plants, cohorts = problem([0.1, 0.2, 0.3, 0.4, 0.0, 0.0, 0.0]), {
        "a": ("s0", "s1", "s3"), "b": ("s2", "s4", "s5", "s6"),
    }
    seen = cohort_problem(plants, cohorts)
    np.testing.assert_allclose(seen.weights, [0.7, 0.3])
    shares = cohort_shares(plants, cohorts)
    assert [shares[f"s{k}"] for k in range(4)] == pytest.approx([1 / 7, 2 / 7, 1.0, 4 / 7])
    assert seen.sites[0].radius == pytest.approx((0.01 + 2 * 0.02 + 4 * 0.04) / 7)
    nothing = cohort_shares(problem([1.0, 0.0, 0.0, 0.0]), {"a": ("s0",), "b": ("s1", "s2", "s3")})
    assert nothing["s2"] == pytest.approx(1 / 3)
    trusted = replace(plants, sites=tuple(replace(site, label_flip_cost=math.inf) for site in plants.sites))
    assert cohort_problem(trusted, cohorts).sites[1].label_flip_cost == math.inf


def test_a_cohorts_flip_cost_is_the_mean_of_its_plants_by_their_shares() -> None:
    plants = problem([0.1, 0.2, 0.3, 0.4])
    costs = (1.0, 2.0, 4.0, 8.0)
    unlike = tuple(replace(site, label_flip_cost=cost) for site, cost in zip(plants.sites, costs, strict=True))
    seen = cohort_problem(replace(plants, sites=unlike), {"a": ("s0", "s1", "s2", "s3")})
    assert seen.sites[0].label_flip_cost == pytest.approx(0.1 * 1.0 + 0.2 * 2.0 + 0.3 * 4.0 + 0.4 * 8.0)


def test_who_is_left_of_a_small_cohort_joins_the_smallest_of_the_others() -> None:
    before = {"a": ("p1", "p2", "p3"), "b": ("p4", "p5", "p6", "p7", "p8"), "c": ("q1", "q2", "q3", "q4")}
    found = without(before, {"p3"})
    assert found == {"b": before["b"], "c": ("p1", "p2", "q1", "q2", "q3", "q4")}


@pytest.mark.parametrize(
    ("cohorts", "mixture", "said"),
    [
        ({"a": ("s0", "s1", "s2")}, 0.0, "every plant of the problem must be in one cohort, and no other; see s3"),
        ({"a": ("s0", "s1", "s2"), "b": ("s2", "s3", "s1")}, 0.0, "see s1"),
        ({"a": ("s0", "s1", "s2", "s3", "s9")}, 0.0, "see s9"),
        ({"a": ("s0", "s1"), "b": ("s2", "s3")}, 0.0, "a cohort has at least 3 plants, a has 2: join it to another"),
        ({"a": ("s0", "s1", "s2", "s3")}, 0.2, 'set reveal = "each site", or the radius over the sites to 0'),
    ],
)
def test_what_hides_too_little_or_too_much_is_refused(
    cohorts: dict[str, tuple[str, ...]], mixture: float, said: str
) -> None:
    with pytest.raises(ProblemError) as refusal:
        cohort_problem(problem([0.25] * 4, MixtureBall("l2", mixture)), cohorts)
    assert said in str(refusal.value) and "\n" not in str(refusal.value)


def test_methods_on_sums_and_those_that_are_not(make_sites: Callable[..., dict[str, SiteProblem]]) -> None:
    """Those that take sums give the rounds that they give with single answers of cohorts; the others refuse."""
    on_sums = {name for name, method in METHODS.items() if method.on_sums}
    assert on_sums == {
        "cohort-bundle", "level-bundle", "level-bundle-plain", "standard", "fdr-sm", "fedsgd", "fedavg", "fedprox",
        "scaffold", "fdr-admm", "fdr-admm-reg",
    }
    sites = make_sites()
    for name in METHODS.keys() - on_sums:
        with pytest.raises(ProblemError, match=f'method {name} needs .*: set reveal = "each site", or take .*cohort-b'):
            check_on_sums(get_method(name))
    with pytest.raises(ProblemError, match="method drfl-admm needs the answer of each plant"):
        train(sites, method="drfl-admm", cohorts={"a": tuple(sites)})


@pytest.mark.parametrize(("shares", "counts", "largest"), [
    ({"a": 0.5, "b": 0.5}, {"a": 10, "b": 100}, 0.05), ({"a": 0.9, "b": 0.1}, {"a": 1000, "b": 10}, 0.01),
    ({"a": 0.9, "b": 0.1}, {"a": 90, "b": 20}, 0.01), ({"a": 0.5}, {"a": 25, "away": 2}, 0.02),
])
def test_the_noise_is_scaled_by_the_row_that_counts_most_whichever_plants_it_is(
    shares: dict[str, float], counts: dict[str, int], largest: float
) -> None:
    """Neither the plant of the largest share nor the smallest plant need have it."""
    assert row_share(shares, counts) == pytest.approx(largest, rel=1e-12)
