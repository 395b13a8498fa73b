"""The bundle on sums over cohorts: certificates that hold, few rounds, plants that are away or forget."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from models.basics import FloatArray, ProblemError, TransportNorm
from models.cohorts.dealing import deal
from models.cuts.certificate import CertificateError
from models.methods.bundle.cohort import CohortServer
from models.methods.bundle.cohort_site import CohortSite, own_centre
from models.one_vs_rest import OneVsRestServer, answer_heads, answer_heads_remembering
from models.problem import RobustSpec, SiteProblem, SiteTerms, Status
from models.simulation.federation import train
from models.worst_case.risk import site_risk
from tests.models.methods.bundle.cohort_run import (
    FOUR,
    MakeSites,
    Run,
    ServerView,
    Sites,
    optimum,
    plants_of,
    shapes_of,
    view,
)


@pytest.mark.parametrize(
    ("loss", "box", "norm"),
    [("hinge", False, "l1"), ("hinge", False, "linf"), ("hinge", True, "l2"), ("hinge", True, "linf"),
     ("logistic", False, "l2"), ("huber", False, "linf"), ("pinball", True, "l1"),
     ("epsilon_insensitive", False, "l2")],
)
def test_the_certificate_of_sums_brackets_the_optimum_in_every_round(
    server_view: ServerView, loss: str, box: bool, norm: TransportNorm
) -> None:
    sites = plants_of(loss, norm, box)
    run, best = Run(sites, view(server_view, sites), deal(sorted(sites), 3, 1)), optimum(sites)
    assert run.until(60) <= 60
    for certificate in run.certificates:
        assert certificate.lower <= best + 1e-9 and certificate.upper >= best - 1e-9
        assert certificate.fresh_weight == pytest.approx(1.0)
    risks = [site_risk(run.server.weights(run.state), site).value for site in sites.values()]
    assert run.certificates[-1].upper == pytest.approx(np.mean(risks), abs=1e-11)
    assert run.certificates[-1].upper >= np.mean(risks) - 1e-15
    assert run.state.evidence.risks.shape[1] == 2


@pytest.fixture(scope="module")
def breast_cancer() -> Callable[[TransportNorm], Sites]:
    """398 rows of the table in four plants that differ in size of the tumours, as ``tests.benchmarks.rounds`` has."""
    features, benign = pytest.importorskip("sklearn.datasets").load_breast_cancer(return_X_y=True)
    random = np.random.default_rng(1)
    drawn = random.permutation(len(benign))[:398]
    x, y = features[drawn], np.where(benign[drawn] == 0, 1.0, -1.0)
    x = 2.0 * (x - x.min(axis=0)) / (x.max(axis=0) - x.min(axis=0)) - 1.0
    order = np.argsort(x[:, 0] + random.normal(0.0, 0.3, len(y)), kind="stable")

    def make(norm: TransportNorm) -> Sites:
        return {
            f"s{g}": SiteProblem(x[part], y[part], RobustSpec(1 / (10 * part.size), 1.0, norm, None, False))
            for g, part in enumerate(np.array_split(order, 4))
        }

    return make


@pytest.mark.parametrize(("norm", "questions", "most"), [("l2", 6, 29), ("linf", 6, 28), ("l2", 1, 66)])
def test_rounds_to_1e_4_in_one_cohort(
    breast_cancer: Callable[[TransportNorm], Sites], norm: TransportNorm, questions: int, most: int
) -> None:
    sites = breast_cancer(norm)
    found = train(
        sites, method="cohort-bundle", parameters={"questions": questions}, cohorts={"all": tuple(sites)},
        max_rounds=most,
    )
    assert found.status is Status.CERTIFIED and found.certificate.gap <= 1e-4
    assert found.history[-1].bytes_per_site == 8 * questions * (2 * 30 + 5)
    assert set(found.site_risks) == {"all"}


def test_the_first_message_bounds_from_below_by_the_plants_own_best(
    breast_cancer: Callable[[TransportNorm], Sites], server_view: ServerView
) -> None:
    """No mixture of weights is better than each plant's own best, and the softest step from zero nearly ends there."""
    sites = breast_cancer("l2")
    run = Run(sites, view(server_view, sites, questions=6.0), {"all": tuple(sites)})
    message = run.server.messages(run.state, run.problem)["all"]
    assert not message["points"].any() and message["penalty"][0] == 0 and len(set(message["penalty"])) == 6
    least = np.mean([train({name: site}, gap=1e-4).certificate.lower for name, site in sites.items()])
    assert 0.9 * least <= run.round().lower
    best = train(sites, gap=1e-4).certificate
    assert run.certificates[0].lower <= best.upper


def test_a_plant_that_forgets_takes_the_shared_centre_and_the_run_goes_on(
    breast_cancer: Callable[[TransportNorm], Sites], server_view: ServerView
) -> None:
    sites = breast_cancer("l2")
    run = Run(sites, view(server_view, sites, 1e-3, questions=1.0), {"all": tuple(sites)})
    for _ in range(6):
        run.round()
    before, message = run.rounds.memories["s1"], run.server.messages(run.state, run.problem)["all"]
    half, parameters = CohortSite(), run.plants.parameters
    found, kept = half.answer_remembering(sites["s1"], message, parameters, before)
    anew, fresh = half.answer_remembering(sites["s1"], message, parameters, {})
    own, forgot = found.arrays, anew.arrays
    assert len(found.account.rows) == 2 * len(message["points"]) and found.account.whole
    assert np.abs(own["minorant_slope"] - forgot["minorant_slope"]).max() > 1e-6
    np.testing.assert_array_equal(own["slope"], forgot["slope"])
    assert kept["slope"].shape == fresh["slope"].shape and np.isnan(fresh["slope"][:6]).all()
    np.testing.assert_array_equal(kept["slope"][:6], before["slope"])
    for part, array in half.answer(sites["s1"], message, parameters).items():
        np.testing.assert_array_equal(array, forgot[part])
    other_questions = {"slope": np.zeros((6, 4, 30)), "norm_weight": np.zeros((6, 4))}
    for part, array in half.answer_remembering(sites["s1"], message, parameters, other_questions)[0].arrays.items():
        np.testing.assert_array_equal(array, forgot[part])
    with pytest.raises(ProblemError, match="counted must hold 2 shares for each exchange, it holds 11"):
        half.answer(sites["s1"], {**message, "counted": message["counted"][:, :11]}, parameters)
    run.rounds.memories["s1"] = {}
    assert run.until(80) <= 80


@pytest.mark.parametrize("box", [False, True])
def test_the_plants_own_centres_are_those_that_single_answers_give(server_view: ServerView, box: bool) -> None:
    """One cohort of plants that are all alike: every plant's own slope is the cohort's, so is its centre."""
    one = plants_of("hinge", "l2", box)["s3"]
    sites = {f"s{g}": one for g in range(3)}
    run = Run(sites, view(server_view, sites, questions=2.0), {"all": tuple(sites)})
    for _ in range(5):
        run.round()
    message = run.server.messages(run.state, run.problem)["all"]
    for k in range(2):
        assert message["penalty"][k] > 0 and message["counted"][k].sum() > 0.1
        own = own_centre(message, k, run.rounds.memories["s1"], 3)
        np.testing.assert_allclose(own, message["centre"][k], rtol=1e-4, atol=1e-4)
        assert np.abs(own - message["points"][k]).max() > 1e-3


def test_plants_that_are_away_leave_cuts_and_no_upper_bound(make_sites: MakeSites, server_view: ServerView) -> None:
    sites = make_sites(**FOUR)
    run, best = Run(sites, view(server_view, sites), {"all": tuple(sites)}), optimum(sites)
    assert run.round({"site-2"}).upper == math.inf and run.certificates[-1].fresh_weight == 0
    assert run.certificates[-1].lower <= best
    absent = {3: {"site-0"}, 4: {"site-0", "site-3"}, 7: set(sites)}
    for number in range(2, 9):
        before = run.certificates[-1]
        after = run.round(absent.get(number, ()))
        assert after.lower >= before.lower and after.upper <= before.upper
        assert after.lower <= best + 1e-9 and after.upper >= best - 1e-9
        if number in absent:
            assert after.upper == before.upper and after.fresh_weight == 0
        else:
            assert after.fresh_weight == pytest.approx(1.0) and after.upper < math.inf
    assert run.until(60) <= 60
    assert run.certificates[-1].upper == pytest.approx(best, rel=2e-6)


def test_the_sum_over_a_part_tightens_the_lower_bound(make_sites: MakeSites, server_view: ServerView) -> None:
    """No risk is below 0, so what a part of the cohort says bounds the whole."""
    sites = make_sites(**FOUR)
    run = Run(sites, view(server_view, sites), {"all": tuple(sites)})
    for absent in [set(sites), *[{"site-3"}] * 8]:
        run.round(absent)
        assert run.server.status(run.state, run.problem) is Status.CONTINUE
    there = {name: site for name, site in sites.items() if name != "site-3"}
    assert 0.5 * 0.75 * optimum(there) < run.certificates[-1].lower <= 0.75 * optimum(there) + 1e-9


def test_after_a_plant_left_for_good_its_cohort_stands_anew(make_sites: MakeSites, server_view: ServerView) -> None:
    sites = make_sites(sizes=(12, 15, 12, 18, 10, 14, 11), seed=3)
    names = sorted(sites)
    cohorts = {"a": tuple(names[:3]), "b": tuple(names[3:])}
    run = Run(sites, view(server_view, sites, 1e-4), cohorts)
    for _ in range(4):
        run.round()
    left = {name: site for name, site in sites.items() if name != names[-1]}
    weights = {name: 1 / 7 if name in cohorts["a"] else 4 / 21 for name in left}
    problem = replace(run.plants, sites=tuple(SiteTerms(name, weights[name], 0.02, 1.0) for name in left))
    after = Run(left, problem, {"a": cohorts["a"], "b": tuple(names[3:6])})
    after.state, known = run.server.anew(run.state, 1), run.state.evidence
    assert not (after.state.evidence.cut_site == 1).any() and (after.state.evidence.cut_site == 0).sum() == 4 * 12
    np.testing.assert_array_equal(after.state.evidence.risks[:, 0], known.risks[:, 0])
    assert np.isnan(after.state.evidence.risks[:, 1]).all(), "what the plants told together with the one that left"
    assert (after.state.evidence.upper, after.state.evidence.lower, known.lower > 0) == (math.inf, 0.0, True)
    np.testing.assert_array_equal(after.state.points[0], known.best_point)
    assert after.until(60) <= 60
    there = [weights[name] * site_risk(after.server.weights(after.state), site).value for name, site in left.items()]
    assert after.certificates[-1].upper == pytest.approx(sum(there), abs=1e-9)
    best = optimum(left, [weights[name] for name in left])
    for certificate in after.certificates:
        assert certificate.lower <= best + 1e-9 and certificate.upper >= best - 1e-9


def test_a_cohort_whose_sums_contradict_each_other_is_found(make_sites: MakeSites, server_view: ServerView) -> None:
    sites = make_sites(**FOUR)
    run = Run(sites, view(server_view, sites, 1e-3), {"all": tuple(sites)})
    for _ in range(5):
        run.round()
    messages, shapes = run.server.messages(run.state, run.problem), shapes_of(run)
    answers = run.rounds.answers(messages, shapes)
    lying = {"all": {**answers["all"], "risk": 0.3 * answers["all"]["risk"]}}
    (found,) = run.server.contradictions(run.state, run.problem, lying).values()
    assert found.risk_round == 6 and 1 <= found.cut_round <= 6
    with pytest.raises(CertificateError, match="lies above the upper bound"):
        run.server.certificate(run.server.step(run.state, run.problem, lying))


def test_heads_remember_side_by_side(make_sites: MakeSites, server_view: ServerView) -> None:
    sites = make_sites(**FOUR)
    problem = view(server_view, sites, questions=2.0)
    server, half = OneVsRestServer(CohortServer(), 2), CohortSite()
    heads = {name: (site, replace(site, labels=-site.labels)) for name, site in sites.items()}
    state, memories = server.init(problem), {name: dict[str, FloatArray]() for name in sites}
    for number in range(1, 4):
        messages, answers = server.messages(state, problem), {}
        for name, pair in heads.items():
            found, memories[name] = answer_heads_remembering(
                half, pair, messages[name], problem.parameters, memories[name]
            )
            answers[name] = found.arrays
            assert len(found.account.rows) == 2 * 2 * 2
            shapes = server.answer_shapes(problem.dimension, 0, problem.parameters)
            assert {key: array.shape for key, array in answers[name].items()} == shapes
            assert memories[name]["slope"].shape == (2, number, 4, 5)
            alone = answer_heads(half, pair, messages[name], problem.parameters)
            np.testing.assert_array_equal(alone["slope"], answers[name]["slope"])
        state = server.unpack(server.pack(server.step(state, problem, answers)))
    assert server.certificate(state).gap < 1


@pytest.mark.parametrize("loose", [1e-2, 1e-4])
def test_where_plants_tell_looser_cuts_than_they_know_the_run_asks_around_the_best_point_once_and_ends(
    make_sites: MakeSites, server_view: ServerView, monkeypatch: pytest.MonkeyPatch, loose: float
) -> None:
    """A guard lets a looser cut out in place of one that isolates a row: the model is below the best point's risk."""
    sites = make_sites(sizes=(20, 15, 12, 18))
    run = Run(sites, view(server_view, sites), {"all": tuple(sites)})
    honest = run.rounds.answers

    def loosened(*given: Any) -> dict[str, dict[str, FloatArray]]:
        said = honest(*given)
        return {
            cohort: dict(each) | {name: each[name] - loose for name in ("cut_height", "minorant_offset")}
            for cohort, each in said.items()
        }

    monkeypatch.setattr(run.rounds, "answers", loosened)
    rounds = run.until(60)
    assert rounds < 20 and run.server.status(run.state, run.problem) is Status.STALLED
    best, end = run.state.evidence.best_point, run.certificates[-1]
    np.testing.assert_array_equal(run.state.points, np.tile(best, (len(run.state.points), 1)))
    assert (np.diff(np.sort(run.state.penalty[0])) > 0).all(), "steps of many lengths"
    value = optimum(sites)
    assert end.lower <= value + 1e-9 and value <= end.upper + 1e-9 and end.upper - end.lower < 3 * loose
    asked = [np.array_equal(each, best) for each in run.state.evidence.points[-2 * len(run.state.points) :]]
    assert sum(asked) >= len(run.state.points), "the best point was asked again before the end"
