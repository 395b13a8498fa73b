"""Other methods than the cohorts' bundle on sums over cohorts: the same steps, or the same optimum."""

from __future__ import annotations

import numpy as np
import pytest

from models.basics import ProblemError
from models.methods.catalogue import check_parameters, get_method
from models.problem import Status
from models.simulation.federation import train
from models.site_ambiguity.ball import MixtureBall
from tests.models.methods.bundle.cohort_run import (
    FOUR,
    MakeSites,
    Run,
    ServerView,
    optimum,
    plants_of,
    shapes_of,
)

ON_SUMS = ["level-bundle", "level-bundle-plain", "fdr-sm", "standard", "fedsgd", "fedavg", "fedprox", "scaffold",
           "fdr-admm", "fdr-admm-reg"]


@pytest.mark.parametrize("name", ON_SUMS)
def test_other_methods_on_sums_go_where_they_go_with_single_answers(make_sites: MakeSites, name: str) -> None:
    """Steps from sums are the same steps; the bundles keep fewer heights, and come to the same optimum."""
    sites = plants_of("logistic", "l2", False, count=4) if name == "scaffold" else make_sites(**FOUR)
    cohorts, bundle = {"all": tuple(sites)}, name.startswith("level") or name == "standard"
    rounds = 60 if bundle else 6
    one = train(sites, method=name, max_rounds=rounds, gap=1e-4)
    other = train(sites, method=name, max_rounds=rounds, gap=1e-4, cohorts=cohorts)
    if bundle:
        assert other.status is Status.CERTIFIED
        assert other.certificate.upper == pytest.approx(one.certificate.upper, rel=2e-4)
    else:
        np.testing.assert_allclose(other.last_point, one.last_point, atol=1e-8)
        assert other.certificate.upper == pytest.approx(one.certificate.upper, abs=1e-9)
        assert np.abs(one.last_point).max() > 1e-3


def test_admm_on_sums_comes_to_the_optimum_though_plants_forget_and_are_away(
    make_sites: MakeSites, server_view: ServerView
) -> None:
    """A plant that forgets takes the cohort's mean multiplier; what was away is corrected by the next whole sum."""
    sites = make_sites(**FOUR, intercept=False)
    problem = server_view(sites, check_parameters(get_method("fdr-admm"), {"rho": 0.02}), 1e-3)
    run, best = Run(sites, problem, {"all": tuple(sites)}, "fdr-admm"), optimum(sites)
    for number in range(1, 13):
        run.round({"site-2"} if number in (4, 8) else ())
        run.rounds.memories["site-1"] = {} if number in (3, 6) else run.rounds.memories["site-1"]
    multipliers = [memory["dual"] + memory["local_point"] - run.state.point for memory in run.rounds.memories.values()]
    np.testing.assert_allclose(run.state.dual[0], np.mean(multipliers, axis=0), atol=1e-9)
    assert np.ptp(multipliers, axis=0).max() > 0.1
    assert run.until(150) <= 150
    assert run.certificates[-1].lower <= best + 1e-9 and best <= run.certificates[-1].upper <= best * 1.002


def test_a_method_without_use_for_partial_sums_does_not_see_them(
    make_sites: MakeSites, server_view: ServerView
) -> None:
    sites = make_sites(**FOUR)
    problem = server_view(sites, check_parameters(get_method("fdr-sm"), {}))
    run = Run(sites, problem, {"all": tuple(sites)}, "fdr-sm")
    run.round()
    messages, shapes = run.server.messages(run.state, run.problem), shapes_of(run)
    assert run.rounds.answers(messages, shapes, {"site-1"}) == {}
    assert set(run.rounds.answers(messages, shapes)) == {"all"}


def test_a_ball_over_the_plants_is_refused_with_what_would_be_right(make_sites: MakeSites) -> None:
    sites = make_sites(**FOUR)
    with pytest.raises(ProblemError, match='set reveal = "each site"'):
        train(sites, method="level-bundle", cohorts={"all": tuple(sites)}, mixture=MixtureBall("l2", 0.2))
