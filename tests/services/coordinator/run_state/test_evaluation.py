"""The risk of the worst mixture from what sites and cohorts told, by hand."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from models.problem import ServerProblem, SiteTerms
from models.site_ambiguity.ball import MixtureBall
from services.contracts.history.run import Run, RunStart, SiteTermsRecord
from services.contracts.plans.plan import Plan
from services.coordinator.run_state.evaluation import Scores, ScoresOnSums, interval_ends, risk_bound

WEIGHTS = {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.25, "e": 0.1, "f": 0.05}


def run_of(names: str, cohorts: tuple[dict[str, Any], ...] = (), **plan: Any) -> Run:
    now, total = datetime.now(UTC), sum(WEIGHTS[name] for name in names)
    start = RunStart.model_validate({"contract": "c", "cohorts": cohorts}) if cohorts else None
    return Run(
        run_id="0" * 32, plan=Plan.model_validate({"name": "nightly", "asset_type": "rig"} | plan), status="running",
        created_at=now, updated_at=now, start=start,
        sites=tuple(
            SiteTermsRecord(site_id=name, weight=WEIGHTS[name] / total, radius=0.1, n_samples=9) for name in names
        ),
    )


def test_cohorts_count_by_the_weight_of_their_plants_and_only_whole() -> None:
    cohorts = ({"name": "one", "sites": ("a", "b", "c")}, {"name": "two", "sites": ("d", "e", "f")})
    run = run_of("abcdef", cohorts)
    found = {"one": {"risk": np.array([0.5, 0.1])}, "two": {"risk": np.array([1.0, 0.2])}}
    whole = Scores({}, (), ScoresOnSums(found, frozenset({"one", "two"})))
    assert whole.worst_risk(run, 9.0) == (pytest.approx(0.6 * 0.6 + 0.4 * 1.2), WEIGHTS)
    for complete in (frozenset[str](), frozenset({"one"})):
        assert Scores({}, (), ScoresOnSums(found, complete)).worst_risk(run, 9.0) == (9.0, WEIGHTS)


def test_the_risk_of_a_cohort_is_known_where_no_plant_of_it_is_missing() -> None:
    cohorts = ({"name": "one", "sites": ("a", "b", "c")}, {"name": "two", "sites": ("d", "e", "f")})
    run = run_of("abcdef", cohorts)
    sums = {"one": {"risk": np.array([0.5, 0.1])}, "two": {"risk": np.array([1.0, 0.2])}}
    assert Scores({}, (), ScoresOnSums(sums, frozenset({"two"}))).of_cohorts(run) == {"two": sums["two"]["risk"]}
    own = {site: {"risk": np.array([float(place)])} for place, site in enumerate("abcde")}
    (name, found), = Scores(own, ()).of_cohorts(run).items()
    assert name == "one" and found == pytest.approx([(0.2 * 1 + 0.3 * 2) / 0.6])


def test_what_a_site_finds_is_told_by_what_it_is() -> None:
    own = {"a": {"loss": np.array(0.7), "risk": np.array([0.5, 0.4]), "confusion": np.eye(2)},
           "b": {"loss": np.array(0.6), "risk": np.array([0.3, 0.2]), "confusion": np.ones((2, 2))}}
    found = Scores(own, ()).evaluation(1.0, {})
    assert found.loss == {"a": 0.7, "b": 0.6}
    assert found.risk == {"a": pytest.approx(0.9), "b": pytest.approx(0.5)}
    assert found.all_confusion is not None and found.all_confusion.tolist() == [[2.0, 1.0], [1.0, 2.0]]


def test_where_some_tell_their_own_the_whole_is_that_of_the_sums() -> None:
    own = {"a": {"loss": np.array(0.7), "risk": np.array([0.5]), "confusion": np.eye(2)}}
    sums = ScoresOnSums({"one": {"confusion": 3.0 * np.eye(2)}, "two": {"confusion": np.ones((2, 2))}}, frozenset())
    found = Scores(own, (), sums).evaluation(1.0, {})
    assert found.all_confusion is not None and found.all_confusion.tolist() == [[4.0, 1.0], [1.0, 4.0]]
    assert {site: counts.tolist() for site, counts in found.confusion.items()} == {"a": [[1.0, 0.0], [0.0, 1.0]]}


def test_each_plane_has_its_own_worst_mixture_and_a_site_that_is_missing_leaves_none() -> None:
    run = run_of("ab", mixture={"norm": "l1", "radius": 2.0})
    own = {"a": {"risk": np.array([0.9, 0.1])}, "b": {"risk": np.array([0.2, 0.5])}}
    value, mixture = Scores(own, ()).worst_risk(run, 9.0)
    assert value == pytest.approx(0.9 + 0.5) and mixture == {"a": pytest.approx(0.5), "b": pytest.approx(0.5)}
    assert Scores({"a": own["a"]}, ()).worst_risk(run, 9.0) == (9.0, {})


def test_a_bound_on_the_risk_is_the_larger_of_what_was_proven_and_what_was_told() -> None:
    sites = (SiteTerms("a", 0.25, 0.1, 1.0), SiteTerms("b", 0.75, 0.1, 1.0))
    problem = ServerProblem(2, sites, "l2", True, mixture=MixtureBall("l1", 0.5))
    told = {"a": 0.8, "b": 0.4}  # the ball moves a quarter of the weight to a: 0.5 and 0.5
    assert risk_bound(0.55, told, problem) == pytest.approx(0.6)
    assert risk_bound(0.7, told, problem) == 0.7
    assert risk_bound(0.55, told | {"b": float("nan")}, problem) == 0.55
    assert risk_bound(0.55, told | {"b": float("inf")}, problem) == 0.55


def test_without_a_bound_every_residual_lies_inside() -> None:
    low, high = interval_ends(Plan(name="nightly", asset_type="rig"), float("inf"))
    assert low == -high and high == np.finfo(np.float64).max


@pytest.mark.parametrize(("method", "bounds"), [("level-bundle", True), ("fdr-sm", True), ("standard", False)])
def test_what_is_no_worst_case_risk_bounds_none(works: Any, method: str, bounds: bool) -> None:
    """It would stand for the risk of a plant that does not tell its own."""
    trained = works.train(works.run(method=method, max_rounds=2))
    assert math.isfinite(trained.risk_bound) is bounds
