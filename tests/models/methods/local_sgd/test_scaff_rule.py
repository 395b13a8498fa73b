"""Scaff-PD-IA's server step by hand: sites that are away, the ridge, the choice of phi, and the sizes of the steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.fairness.ambiguity_set import RelativeSet, balanced_phi
from models.fairness.dual_step import dual_step
from models.methods.catalogue import check_parameters, get_method
from models.methods.local_sgd.scaff_pd import ScaffRule
from models.methods.local_sgd.scaff_steps import step_rule
from models.problem import ServerProblem, SiteTerms

POINT = np.array([1.0, -2.0])
SLOPES = {"a": np.array([1.0, 0.5]), "b": np.array([-2.0, 3.0]), "c": np.array([0.3, 0.1])}
LOSSES = {"a": 1.0, "b": 3.0, "c": 2.5}
GIVEN = {"alpha": 0.5, "beta": 0.5, "global_step": 0.1, "step_size": 0.02, "dual_step": 0.05, "local_steps": 3.0}


def _problem(**given: float) -> ServerProblem:
    terms = tuple(SiteTerms(name, 1 / 3, 0.0, 1.0) for name in "abc")
    return ServerProblem(2, terms, "l2", False, parameters=check_parameters(get_method("scaff-pd-ia"), GIVEN | given))


def _losses(names: str, scale: float = 1.0) -> dict[str, Any]:
    return {name: {"risk": np.array(scale * LOSSES[name]), "slope": SLOPES[name]} for name in names}


def test_a_site_that_was_never_heard_counts_as_the_mean_and_a_first_word_is_no_trend() -> None:
    problem, rule = _problem(ridge=0.3), ScaffRule()
    memory = rule.advance(rule.begin(problem, POINT), problem, _losses("ab"))
    known = np.array([1.0, 3.0, 2.0])
    wanted = dual_step(RelativeSet.of_shares(3, 0.0, 0.5, 0.5), known, np.full(3, 1 / 3), 0.05)
    np.testing.assert_allclose(memory["lambda"], wanted.weights, rtol=1e-12)
    np.testing.assert_array_equal(memory["losses"], [1.0, 3.0, np.nan])
    np.testing.assert_allclose(memory["slopes"][:2], [SLOPES[name] + 0.3 * POINT for name in "ab"])
    np.testing.assert_array_equal(memory["slopes"][2], 0.0)
    # A word that follows is one: twice as large now, so three times as large is expected.
    memory["phase"] = np.array(0.0)
    second = rule.advance(memory, problem, _losses("b", 2.0))
    ahead = np.array([1.0, 6.0, 3.5]) + np.array([0.0, 3.0, 0.0])
    wanted = dual_step(RelativeSet.of_shares(3, 0.0, 0.5, 0.5), ahead, memory["lambda"], 0.05)
    np.testing.assert_allclose(second["lambda"], wanted.weights, rtol=1e-12)


def test_local_steps_of_a_site_that_is_away_count_as_the_control() -> None:
    problem, rule = _problem(), ScaffRule()
    memory = rule.advance(rule.begin(problem, POINT), problem, _losses("abc"))
    shares = memory["lambda"]
    control = shares @ np.array([SLOPES[name] for name in "abc"])
    ended = {"a": np.array([0.9, -2.2]), "b": np.array([1.3, -1.9])}
    after = rule.advance(memory, problem, {name: {"local_point": point} for name, point in ended.items()})
    went = [(POINT - ended[name]) / (0.02 * 3) for name in "ab"] + [control]
    np.testing.assert_allclose(after["point"], POINT - 0.1 * shares @ np.array(went), rtol=1e-12)


def test_phi_is_chosen_with_all_sites_there_and_with_the_ridge() -> None:
    problem, rule = _problem(choose_after=2.0, ridge=0.4), ScaffRule()
    hessians = np.array([np.diag([1.0, 2.0]), np.diag([2.0, 0.5]), np.eye(2)])

    def told(memory: Any, names: str) -> dict[str, Any]:
        away = rule.asked(memory) - POINT
        return {
            name: {"risk": np.array(LOSSES[name]), "slope": SLOPES[name] + hessians["abc".index(name)] @ away}
            for name in names
        }

    first = rule.begin(problem, POINT) | {"round": np.array(2.0)}
    assert rule.advance(first, problem, told(first, "ab"))["phase"] == 1.0  # one is away: an ordinary round
    memory = rule.advance(first, problem, told(first, "abc"))
    assert memory["phase"] == 2.0 and memory["cg_left"] == 2.0
    assert rule.advance(memory, problem, told(memory, "ac")) is memory  # asked again until all are there
    assert "before phi was chosen" in rule.note([memory], problem)
    while memory["phase"] == 2.0:
        memory = rule.advance(memory, problem, told(memory, "abc"))
    alone, losses = RelativeSet.of_shares(3, 0.0, 0.5, 0.5), np.array(list(LOSSES.values()))
    a, b = alone.worst.worst(losses), alone.best.best(losses)
    pull = b @ (np.array(list(SLOPES.values())) + 0.4 * POINT)
    curved = np.einsum("i,ipq->pq", a, hessians) + 0.4 * np.eye(2)
    wanted = balanced_phi(a @ losses, b @ losses, pull @ np.linalg.solve(curved, pull))
    assert 0.05 < wanted < 0.95
    assert float(memory["phi"]) == pytest.approx(wanted, rel=1e-6)
    assert float(memory["round"]) == 3.0
    assert float(memory["sum_norm"]) == pytest.approx(RelativeSet.of_shares(3, wanted, 0.5, 0.5).sum_norm())
    # Several classes have a phi each: what is said of the whole is said of the largest.
    smaller = memory | {"phi": np.array(0.5 * wanted)}
    for memories in ([memory, smaller], [smaller, memory]):
        assert rule.note(memories, problem).startswith(f"phi {wanted:.4g}:")


def test_local_steps_are_short_where_the_global_one_is_long() -> None:
    """``tau / (J max(1, 2 tau0 M))``, in the first round and in those after it."""
    parameters = {
        "local_steps": 4.0, "strong_convexity": 1.0, "smoothness": 1.5, "tau0": 0.9, "gamma0": 0.2, "coupling": 0.0,
    }
    rule = step_rule(parameters, 1.1)
    second = rule.after(rule.first)
    assert rule.first.tau == 0.9 and rule.first.eta == pytest.approx(0.9 / (4 * 2.7))
    assert second.tau < 0.9 and second.eta == pytest.approx(second.tau / (4 * 2.7))
    one_curvature = step_rule(parameters | {"strong_convexity": 1.5}, 1.0)
    assert one_curvature.growth == pytest.approx(1.5 / 4)


@pytest.mark.parametrize("sum_norm", [1.0, 1.1, 3.0])
def test_the_first_step_is_above_zero_however_large_the_set_is(sum_norm: float) -> None:
    """Of a set beyond Assumption 8 as well, where the steps stay as long as the first one."""
    rule = step_rule({"local_steps": 4.0, "strong_convexity": 1.0, "smoothness": 1.5, "dual_step": 0.3}, sum_norm)
    assert rule.first.tau == pytest.approx(1.0 / (1200.0 * 1.5 * sum_norm))
    assert (rule.after(rule.first).tau < rule.first.tau) == (sum_norm < 4.0 / 3.0)


@pytest.mark.parametrize(
    "given", [{"tau0": 1e-170}, {"coupling": 1e-200}, {"coupling": 1e-320}, {"smoothness": 1e306}]
)
def test_where_the_couplings_square_is_no_number_sigma_begins_as_without_one(given: dict[str, float]) -> None:
    stated = {"local_steps": 3.0, "strong_convexity": 1.0, "smoothness": 1.0, "coupling": 1.0, "dual_step": 0.05}
    rule, without = (step_rule({**stated, **given, **coupling}, 1.0) for coupling in ({}, {"coupling": 0.0}))
    assert rule == without and rule.first.sigma == 0.05
    assert step_rule({**stated, "tau0": 0.01}, 1.0).first.sigma > 1.0
