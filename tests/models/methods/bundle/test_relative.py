"""Relative fairness over worst-case risks: the majorant, both bounds, special cases, absence, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from models.basics import ProblemError
from models.cuts.evidence import cut_model
from models.fairness.ambiguity_set import RelativeSet
from models.fairness.indices import relative_unfairness
from models.fairness.relative_risk import Majorant, negative_lift, positive_member
from models.geometry.supports import BoxSupport
from models.losses.catalogue import get_loss
from models.methods.bundle.relative import RelativeServer, _next_centre, ambiguity_of
from models.methods.catalogue import get_method
from models.methods.site_answers import RiskSite
from models.problem import RobustSpec, SiteProblem, Status
from models.simulation.federation import server_problem, train
from models.site_ambiguity.ball import MixtureBall
from models.worst_case.risk import site_risk

METHOD = get_method("relative-fairness")


def plants(seed, n_sites=4, rows=20, p=2, norm="l2", radius=0.02, boxed=False, loss="hinge"):
    rng = np.random.default_rng(seed)
    aim, sites = rng.normal(size=p), {}
    for g in range(n_sites):
        features = np.clip(rng.normal(size=(rows, p)) + 0.5 * rng.normal(size=p), -3, 3)
        score = features @ (aim + 0.4 * g * rng.normal(size=p)) + (0.1 + 0.3 * g) * rng.normal(size=rows)
        regression = loss in ("huber", "epsilon_insensitive", "pinball")
        support = BoxSupport(np.full(p, -3.0), np.full(p, 3.0)) if boxed else None
        spec = RobustSpec(radius, 1.0, norm, support=support, loss=get_loss(loss))
        sites[f"s{g}"] = SiteProblem(features, score if regression else np.where(score > 0, 1.0, -1.0), spec)
    return sites


def objective(sites, ambiguity):
    return lambda w: ambiguity.largest(np.array([site_risk(w, site).value for site in sites.values()]))


def run(sites, rounds, absent=(), weights=None, **parameters):
    """The last state of a run by hand, through packed states; ``absent``: (round, site) pairs that do not answer."""
    problem = server_problem(sites, weights, METHOD, parameters, 1e-4)
    server, state = RelativeServer(), RelativeServer().init(problem)
    for number in range(rounds):
        messages = server.messages(state, problem)
        answers = {
            name: RiskSite().answer(site, messages[name], problem.parameters)
            for name, site in sites.items()
            if (number, name) not in absent
        }
        state = server.unpack(server.pack(server.step(state, problem, answers)))
        if server.status(state, problem) is not Status.CONTINUE:
            break
    return state, problem


@given(st.integers(0, 10**6), st.integers(1, 6), st.sampled_from([0.0, 0.1, 0.5]))
@settings(max_examples=25, derandomize=True)
def test_lift_is_the_least_that_leaves_no_negative_weight(seed, n, phi):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(n))
    ambiguity = RelativeSet.of_weights(weights, phi, float(rng.choice([0.2, 0.6, 1.0])), float(rng.choice([0.3, 1.0])))
    least = [min(ambiguity.member(rng.normal(size=n) - 9.0 * np.eye(n)[g])[g] for _ in range(3)) for g in range(n)]
    assert negative_lift(ambiguity) == pytest.approx(np.maximum(-np.array(least), 0.0), abs=1e-12)
    member = positive_member(ambiguity, rng.normal(size=n), weights)
    values = rng.random((30, n))
    assert member.min() >= 0 and member.sum() == pytest.approx(1.0)
    assert all(member @ each <= ambiguity.largest(each) + 1e-9 for each in values)


@given(st.integers(0, 10**6), st.sampled_from(["l1", "l2", "linf"]))
@settings(max_examples=8, derandomize=True)
def test_majorant_lies_above_and_touches_at_its_centre(seed, norm):
    sites = plants(seed, norm=norm)
    state, problem = run(sites, 4, phi=0.4, alpha=0.3, beta=0.6)
    ambiguity, model = ambiguity_of(problem), cut_model(state.evidence, problem)
    fairness, centre = objective(sites, ambiguity), state.evidence.points[-1]
    majorant = Majorant.around(centre, model, ambiguity)
    rng = np.random.default_rng(seed)
    for point in (centre, *(centre + rng.normal(size=(12, 3)) * 10.0 ** rng.uniform(-3, 1, size=(12, 1)))):
        risks = np.array([site_risk(point, site).value for site in sites.values()])
        assert majorant.value(point, risks) >= fairness(point) - 1e-9 * (1 + fairness(point))
    risks = np.array([site_risk(centre, site).value for site in sites.values()])
    assert majorant.value(centre, risks) == pytest.approx(fairness(centre), rel=1e-9)


@pytest.mark.parametrize(
    ("seed", "norm", "boxed"), [(3, "l1", False), (2, "linf", False), (5, "l2", False), (3, "l1", True)]
)
def test_both_bounds_hold_and_the_end_is_critical(seed, norm, boxed):
    sites = plants(seed, norm=norm, boxed=boxed)
    state, problem = run(sites, 150, phi=0.3, alpha=0.3, beta=0.6)
    server, ambiguity = RelativeServer(), ambiguity_of(problem)
    fairness, certificate = objective(sites, ambiguity), server.certificate(state)
    assert server.status(state, problem) is Status.CRITICAL and state.convex_part.gap <= 1e-4
    assert certificate.upper == pytest.approx(fairness(server.weights(state)), rel=1e-12)
    # The whole: no start of a local search finds anything below the global bound.
    rng = np.random.default_rng(seed)
    starts = [server.weights(state), np.zeros(3), *rng.normal(size=(2, 3))]
    lowest = min(minimize(fairness, start, method="Nelder-Mead", options={"maxiter": 80}).fun for start in starts)
    assert 0 < certificate.lower <= lowest + 1e-9
    # The convex part: a search of the majorant around the centre stays above its bound and finds little below it.
    centre, model = state.evidence.points[state.centre], cut_model(state.evidence, problem)
    majorant = Majorant.around(centre, model, ambiguity)

    def above(w):
        return majorant.value(w, np.array([site_risk(w, site).value for site in sites.values()]))

    found = minimize(above, centre, method="Nelder-Mead", options={"maxiter": 200, "xatol": 1e-9, "fatol": 1e-12}).fun
    assert state.convex_lower <= found + 1e-9
    assert found >= state.centre_value * (1 - 2e-4)


def test_phi_zero_is_convex_and_single_points_are_the_plain_problem():
    sites = plants(3, n_sites=3)
    plain = train(sites, method="level-bundle", gap=1e-5)
    assert plain.convex_part is None
    for phi in (0.0, 0.6):
        found = train(sites, method="relative-fairness", parameters={"phi": phi, "alpha": 1, "beta": 1}, gap=1e-5)
        assert found.status is Status.CERTIFIED
        assert found.certificate.upper == pytest.approx(plain.certificate.upper, rel=2e-5)
        assert list(found.mixture_weights.values()) == pytest.approx([1 / 3] * 3)
    worst = train(sites, method="level-bundle", mixture=MixtureBall("l1", 2.0), gap=1e-5)
    found = train(sites, method="relative-fairness", parameters={"phi": 0.0, "alpha": 1 / 3}, gap=1e-5)
    assert found.status is Status.CERTIFIED
    assert found.certificate.upper == pytest.approx(worst.certificate.upper, rel=2e-5)


@pytest.mark.parametrize("seed", [1, 2])
def test_unfairness_is_never_above_that_of_phi_zero(seed):
    sites, ratios = plants(seed, n_sites=5, p=3), []
    for phi in (0.0, 0.1, 0.4):
        found = train(sites, method="relative-fairness", parameters={"phi": phi, "alpha": 0.4, "beta": 0.4}, gap=1e-4)
        assert found.status in (Status.CERTIFIED, Status.CRITICAL)
        assert found.convex_part is not None and found.convex_part.gap <= 1e-4
        ratios.append(relative_unfairness(list(found.site_risks.values()), 0.4, 0.4))
        assert sum(found.mixture_weights.values()) == pytest.approx(1.0)
        assert found.certificate.upper == pytest.approx(
            sum(found.mixture_weights[name] * found.site_risks[name] for name in sites)
        )
    assert max(ratios[1:]) <= ratios[0] * (1 + 1e-3) and ratios[2] < ratios[0] - 1e-3


@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_other_losses_end_critical_with_bounds_in_order(loss):
    found = train(plants(4, loss=loss), method="relative-fairness", parameters={"phi": 0.2}, gap=1e-3)
    assert found.status in (Status.CERTIFIED, Status.CRITICAL)
    assert 0 < found.certificate.lower <= found.certificate.upper


def test_weights_of_the_sites_scale_the_caps():
    ambiguity = RelativeSet.of_weights(np.array([0.5, 0.3, 0.2]), 0.25, 0.5, 1.0)
    assert ambiguity.worst.caps == pytest.approx([1.0, 0.6, 0.4]) and ambiguity.best.caps == pytest.approx(
        [0.5, 0.3, 0.2]
    )
    same = RelativeSet.of_weights(np.full(4, 0.25), 0.25, 0.3, 0.6)
    losses = np.array([3.0, 1.0, 2.0, 5.0])
    assert same.largest(losses) == pytest.approx(RelativeSet.of_shares(4, 0.25, 0.3, 0.6).largest(losses))


def test_absent_sites_enter_by_their_cuts_and_the_run_ends_as_without():
    sites = plants(2, norm="linf")
    absent = {(k, "s1") for k in (0, 2, 3)} | {(k, "s3") for k in (1, 5)}
    state, problem = run(sites, 150, absent=absent, phi=0.2, alpha=0.3, beta=0.6)
    whole, _ = run(sites, 150, phi=0.2, alpha=0.3, beta=0.6)
    server = RelativeServer()
    assert server.certificate(state).fresh_weight == 1.0
    assert server.status(state, problem) is Status.CRITICAL
    assert state.evidence.upper == pytest.approx(objective(sites, ambiguity_of(problem))(server.weights(state)))
    assert state.evidence.upper == pytest.approx(whole.evidence.upper, rel=5e-3)
    early, _ = run(sites, 3, absent=absent, phi=0.2, alpha=0.3, beta=0.6)
    assert server.certificate(early).fresh_weight == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"parameters": {"phi": 1.0}}, "phi of method relative-fairness must be at or above 0 and below 1, got 1"),
        ({"parameters": {"phi": -0.1}}, "phi of method relative-fairness must be at or above 0 and below 1"),
        ({"parameters": {"alpha": 0.0}}, "alpha of method relative-fairness must be above 0 and at most 1, got 0"),
        ({"parameters": {"beta": 1.5}}, "beta of method relative-fairness must be above 0 and at most 1, got 1.5"),
        ({"mixture": MixtureBall("l2", 0.3)}, "trains with fixed site weights, so the radius over the sites must be 0"),
    ],
)
def test_refusals_are_one_clear_line(more, words):
    with pytest.raises(ProblemError, match=words) as refusal:
        train(plants(1), method="relative-fairness", **more)
    assert "\n" not in str(refusal.value)


def test_a_new_centre_is_lower_by_a_tenth_of_what_is_left_and_was_asked_since() -> None:
    """The old one stays at 4 with a bound of 2: a new one is at or below 3.8. What came before it has had its turn."""
    problem = server_problem(plants(0), None, METHOD, {}, 1e-4)
    state = replace(RelativeServer().init(problem), first=False, centre=1, since=3, convex_lower=2.0)
    for values, wanted in (
        ([5.0, 4.0, 1.0], 1), ([5.0, 4.0, 1.0, 3.9], 1), ([5.0, 4.0, 1.0, 3.79], 3), ([5.0, 4.0, 1.0, 3.79, 3.5], 4),
    ):
        assert _next_centre(state, np.array(values)) == wanted
    assert _next_centre(replace(state, centre=-1), np.array([5.0, 4.0, 1.0, 3.9])) == 2


def test_the_first_stage_is_that_of_phi_0_and_the_second_begins_at_its_best_point() -> None:
    """In the first one value, centre and bound are of max_A alone; F everywhere is what is judged and certified."""
    sites, server = plants(6, n_sites=5), RelativeServer()
    problem = server_problem(sites, None, METHOD, {"phi": 0.4, "alpha": 0.3, "beta": 0.6}, 1e-4)
    state = server.init(problem)
    while state.first:
        before, messages = state, server.messages(state, problem)
        answers = {name: RiskSite().answer(site, messages[name], problem.parameters) for name, site in sites.items()}
        state = server.step(state, problem, answers)
    ambiguity = ambiguity_of(problem)
    plain = RelativeSet.of_weights(problem.weights, 0.0, 0.3, 0.6)

    def values(of, points):
        return np.array([of.largest(np.array([site_risk(w, site).value for site in sites.values()])) for w in points])

    judged, points = values(plain, before.evidence.points), before.evidence.points
    assert before.centre_value == pytest.approx(judged[before.centre], rel=1e-12)
    assert before.convex_lower <= judged.min() and before.centre_value <= judged.min() * 1.1
    assert before.evidence.upper == pytest.approx(values(ambiguity, points).min(), rel=1e-12)
    asked = state.evidence.points
    assert state.centre == int(np.argmin(values(plain, asked))) != int(np.argmin(values(ambiguity, asked)))
    assert state.since == len(asked)
    assert state.centre_value == pytest.approx(values(ambiguity, asked)[state.centre], rel=1e-12)


def test_a_bound_is_never_above_the_best_value_and_never_falls(monkeypatch) -> None:
    """Rounding may lift it there once both meet, and a later one may be worth less."""
    for bounds, kept in (([0.2, 0.1], 0.2), ([0.1, 0.2], 0.2), ([0.1, 99.0], None)):
        found = iter(bounds)
        monkeypatch.setattr("models.methods.bundle.relative.global_bound", lambda *given, found=found: next(found))
        state, _ = run(plants(3), 2)
        assert state.evidence.lower == (state.evidence.upper if kept is None else kept) < 99.0


def test_sites_that_leave_take_the_second_stage_with_them() -> None:
    """Its centre, and the bound of its majorant, were those of all sites."""
    problem, server = server_problem(plants(0), None, METHOD, {}, 1e-4), RelativeServer()
    state = replace(
        server.init(problem), first=False, centre=0, since=1, centre_value=3.0, convex_lower=2.0, stagnated=True
    )
    kept = server.of_sites(state, problem, [0, 2])
    assert kept.first and kept.centre == -1 and kept.since == 0 and not kept.stagnated
    assert kept.centre_value == np.inf and kept.convex_lower == -np.inf
