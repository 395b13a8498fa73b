"""The subgradient method by hand: its steps from the exact cuts, and the bounds that it keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.geometry.norms import steepest_move
from models.methods.catalogue import get_method
from models.problem import RobustSpec, SiteProblem, Status
from models.simulation.federation import server_problem
from models.site_ambiguity.ball import MixtureBall, worst_mixture
from models.worst_case.risk import site_cut, site_risk

METHOD = get_method("fdr-sm")
WEIGHTS = {"a": 0.5, "b": 0.3, "c": 0.2}


def sites(norm: Any) -> dict[str, SiteProblem]:
    random, found = np.random.default_rng(2), {}
    for name in WEIGHTS:
        x = random.normal(size=(15, 2)) + random.normal(size=2)
        y = np.where(x @ [1.0, -1.0] + 0.7 * random.normal(size=15) > 0, 1.0, -1.0)
        found[name] = SiteProblem(x, y, RobustSpec(0.1, 0.8, norm))
    return found


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("radius", [0.0, 0.3])
@pytest.mark.parametrize("power", [1.0, 0.5, 0.0])
def test_steps_go_against_the_subgradients_in_the_worst_mixture(norm: Any, radius: float, power: float) -> None:
    """Of step_size over the step's number to its power; the best point's risk in the worst mixture is the bound."""
    plants, ball = sites(norm), MixtureBall("l2", radius)
    problem = server_problem(plants, WEIGHTS, METHOD, {"step_size": 0.4, "step_power": power}, 1e-3, mixture=ball)
    state, shares = METHOD.server.init(problem), np.array(list(WEIGHTS.values()))
    for number in range(1, 5):
        messages = METHOD.server.messages(state, problem)
        point = messages["a"]["point"]
        answers = {g: METHOD.site.answer(plants[g], messages[g], problem.parameters) for g in plants}
        cuts = [site_cut(point, plant) for plant in plants.values()]
        move = np.append(steepest_move(point[:2], norm), 0.0)
        slopes = [cut.slope + cut.norm_weight * move for cut in cuts]
        mixture = worst_mixture(np.array([cut.risk for cut in cuts]), shares, ball).weights
        state = METHOD.server.step(state, problem, answers)
        expected = point - 0.4 / number**power * (mixture @ np.array(slopes))
        np.testing.assert_allclose(METHOD.server.messages(state, problem)["b"]["point"], expected, atol=1e-12)
    best, certificate = METHOD.server.weights(state), METHOD.server.certificate(state)
    risks = np.array([site_risk(best, plant).value for plant in plants.values()])
    assert certificate.upper == pytest.approx(worst_mixture(risks, shares, ball).value)
    assert 0.0 < certificate.lower <= certificate.upper


def test_a_site_that_is_away_enters_by_its_cuts() -> None:
    """At the same point its model is the cut itself: the step is what it would have been."""
    plants = sites("l2")
    problem = server_problem(plants, WEIGHTS, METHOD, {"step_size": 0.4, "step_power": 0.0}, 1e-3)
    state = METHOD.server.init(problem)
    for away in (None, "b"):
        messages = METHOD.server.messages(state, problem)
        point = messages["a"]["point"]
        answers = {
            g: METHOD.site.answer(plants[g], messages[g], problem.parameters) for g in plants if g != away
        }
        before, state = point, METHOD.server.step(state, problem, answers)
    first = site_cut(np.zeros(3), plants["b"])
    slopes = [site_cut(before, plants[g]) for g in "ac"]
    move = np.append(steepest_move(before[:2], "l2"), 0.0)
    known = [cut.slope + cut.norm_weight * move for cut in (slopes[0], first, slopes[1])]
    expected = before - 0.4 * (np.array([0.5, 0.3, 0.2]) @ np.array(known))
    np.testing.assert_allclose(METHOD.server.messages(state, problem)["a"]["point"], expected, atol=1e-12)


def test_a_step_that_is_none_but_for_rounding_stalls_the_run() -> None:
    """Zero weights are the best ones in a wide ball: a question next to them is one that no plant answers."""
    spec = RobustSpec(50.0, 0.8, "l2")
    mirrored = {
        name: SiteProblem(np.vstack([each.features] * 2), np.concatenate([each.labels, -each.labels]), spec)
        for name, each in sites("l2").items()
    }
    problem = server_problem(mirrored, WEIGHTS, METHOD, {"step_size": 0.4}, 1e-3)
    state = METHOD.server.init(problem)
    answers = {g: METHOD.site.answer(mirrored[g], {"point": np.zeros(3)}, problem.parameters) for g in mirrored}
    state = METHOD.server.step(state, problem, answers)
    assert METHOD.server.status(state, problem) in (Status.STALLED, Status.CERTIFIED) and state.stagnated
    moved = {g: cut | {"slope": np.array([1e-3, 0.0, 0.0])} for g, cut in answers.items()}
    assert not METHOD.server.step(METHOD.server.init(problem), problem, moved).stagnated
