"""The bundle on sums over cohorts: certificates that hold, few rounds, plants that are away or forget."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from models.basics import FloatArray, ProblemError, TransportNorm
from models.cohorts.dealing import cohort_problem, deal
from models.cuts.certificate import CertificateError
from models.geometry.supports import BoxSupport
from models.losses.catalogue import get_loss
from models.methods.bundle.cohort import CohortServer
from models.methods.bundle.cohort_site import CohortSite, own_centre
from models.methods.catalogue import check_parameters, get_method
from models.multiclass import OneVsRestServer, answer_heads, answer_heads_remembering
from models.problem import Certificate, RobustSpec, ServerProblem, SiteProblem, SiteTerms, Status
from models.simulation.cohort_rounds import CohortRounds
from models.simulation.federation import train
from models.site_ambiguity.ball import MixtureBall
from models.worst_case.risk import site_risk

Sites = dict[str, SiteProblem]
MakeSites = Callable[..., Sites]
ServerView = Callable[..., ServerProblem]
FOUR = {"sizes": (20, 15, 12, 18)}


def shapes_of(run: Run) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = run.server.answer_shapes(
        run.problem.dimension, run.problem.n_swings, run.problem.parameters
    )
    return found


class Run:
    """Plants in cohorts, round by round, with plants that are absent or forget."""

    def __init__(
        self, sites: Sites, problem: ServerProblem, cohorts: Mapping[str, tuple[str, ...]], name: str = "cohort-bundle"
    ) -> None:
        method = get_method(name)
        self.server: Any = method.server
        self.plants, self.problem = problem, cohort_problem(problem, cohorts)
        self.rounds = CohortRounds(method, sites, problem, cohorts)
        self.state = self.server.init(self.problem)
        self.certificates: list[Certificate] = []

    def round(self, absent: Container[str] = ()) -> Certificate:
        messages, shapes = self.server.messages(self.state, self.problem), shapes_of(self)
        answers = self.rounds.answers(messages, shapes, absent)
        assert not self.server.contradictions(self.state, self.problem, answers)
        self.state = self.server.unpack(self.server.pack(self.server.step(self.state, self.problem, answers)))
        self.certificates.append(self.server.certificate(self.state))
        return self.certificates[-1]

    def until(self, most: int) -> int:
        for count in range(1, most + 1):
            self.round()
            if self.server.status(self.state, self.problem) is not Status.CONTINUE:
                return count
        return most + 1


def view(server_view: ServerView, sites: Sites, gap: float = 1e-6, **parameters: float) -> ServerProblem:
    return server_view(sites, check_parameters(get_method("cohort-bundle"), parameters), gap)


def optimum(sites: Sites, shares: list[float] | None = None) -> float:
    from tests.oracles.whole_problem import solve_whole

    pytest.importorskip("cvxpy", reason="the oracle needs the extra 'reference'")
    return float(solve_whole(list(sites.values()), shares or [1 / len(sites)] * len(sites)).value)


def plants_of(loss_name: str, norm: TransportNorm, box: bool, intercept: bool = True, count: int = 6) -> Sites:
    draw, loss = np.random.default_rng(7), get_loss(loss_name)
    truth, sites = draw.normal(size=3), {}
    for g in range(count):
        x = np.clip(draw.uniform(0, 1, (10 + g, 3)) + 0.05 * g, 0, 1)
        score = (x - 0.5) @ truth + 0.3 * draw.normal(size=10 + g)
        y = np.where(score > 0, 1.0, -1.0) if loss.task == "classification" else score
        support = BoxSupport(np.zeros(3), np.ones(3)) if box else None
        sites[f"s{g}"] = SiteProblem(x, y, RobustSpec(0.02, 1.0, norm, support, intercept, loss))
    return sites


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize(
    ("loss", "box"),
    [("hinge", False), ("hinge", True), ("logistic", False), ("huber", False), ("pinball", True),
     ("epsilon_insensitive", False)],
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
    best = train(sites, method="cohort-bundle", cohorts={"all": tuple(sites)}, gap=1e-4).certificate
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
    np.testing.assert_array_equal(after.state.points[0], known.best_point)
    assert after.until(60) <= 60
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


def test_a_ball_over_the_plants_is_refused_with_what_would_be_right(make_sites: MakeSites) -> None:
    sites = make_sites(**FOUR)
    with pytest.raises(ProblemError, match='set reveal = "each site"'):
        train(sites, method="level-bundle", cohorts={"all": tuple(sites)}, mixture=MixtureBall("l2", 0.2))
