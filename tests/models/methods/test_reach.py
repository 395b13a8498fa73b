"""No step of any rows ends beyond the reach of what was asked, whatever method, loss, numbers or guard."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.basics import Arrays, FloatArray
from models.losses.catalogue import get_loss
from models.methods.catalogue import METHODS, check_parameters
from models.methods.guard import FIRST_MOVE, MOVES
from models.methods.local_sgd.objectives.network import NetworkObjective
from models.methods.local_sgd.objectives.softmax import SoftmaxObjective
from models.methods.local_sgd.site import LocalStepsSite
from models.methods.reach import Reach, _grown, reach
from models.methods.splitting.ad_lpmm_site import DrflSite
from models.problem import RobustSpec, SiteProblem
from models.worst_case.risk_range import risk_range, steepest_slope

UNBOUNDED = (("hinge", "smooth_hinge", "logistic"), ("huber", "pinball", "epsilon_insensitive"))
BOXED = (("hinge",), ("pinball", "epsilon_insensitive"))
STEPPING = [
    name for name, each in METHODS.items() if "local_point" in each.server.answer_shapes(2, 0, each.parameters)
]
SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


class AnyAnswer:
    """A guard that lets one of the answers leave that an honest plant may have to give."""

    def __init__(self, number: int, seed: int) -> None:
        self._number, self._random = number, np.random.default_rng(seed)

    def choose(self, question: bytes, candidate: Any, vectors: Any) -> Any:
        return candidate(self._number, self._random)

    def choose_cut(self, question: bytes, near: Any, exact: Any, other: Any) -> Any:
        return exact


def message_of(draw: Any, point: FloatArray, random: np.random.Generator) -> Arrays:
    """A question to a half of any method."""
    sizes = st.sampled_from([0.0, 1e-3, 0.3, 1.0, 30.0])
    scalars = {
        "penalty": draw(st.sampled_from([1e-3, 0.1, 1.0, 100.0])), "ridge": draw(sizes), "stiffness": draw(sizes),
        "target": draw(st.sampled_from([-1.0, 0.0, 0.4, 10.0])), "draw": 7.0, "step_size": draw(sizes),
        "snapshot_step": draw(st.sampled_from([0.0, 1.0, 3.0])), "own_control": draw(st.sampled_from([0.0, 1.0])),
        "inner": draw(st.sampled_from([-3.0, 0.0, 2.0])), "share": draw(st.sampled_from([0.01, 0.25, 1.0])),
    }
    vectors = {name: random.normal(size=point.shape) * draw(sizes) for name in ("centre", "correction")}
    return {"point": point, **vectors, **{name: np.array(value) for name, value in scalars.items()}}


def parameters_of(draw: Any, name: str) -> dict[str, float]:
    choices = {
        "batch": [0.05, 0.34, 0.6, 1.0], "epochs": [1.0, 3.0], "local_steps": [0.0, 1.0, 4.0],
        "ridge": [0.0, 0.1, 20.0], "proximal": [0.0, 1.0, 20.0], "temperature": [0.1, 1.0], "over_rows": [0.0, 1.0],
        "mixup_ratio": [0.0, 0.5, 1.0],
    }
    known = METHODS[name].parameters
    chosen = {each: draw(st.sampled_from(values)) for each, values in choices.items() if each in known}
    return {**known, **chosen, "least_rows": draw(st.sampled_from([1.0, 2.0, 20.0]))}


def highest(problem: SiteProblem, weights: FloatArray) -> float:
    spec = problem.spec
    return risk_range(
        weights, spec.loss, radius=spec.radius, label_flip_cost=spec.label_flip_cost,
        transport_norm=spec.transport_norm, fit_intercept=spec.fit_intercept,
    ).high


def held(found: Reach, answer: Arrays) -> bool:
    rounding = 1e-6 * max(1.0, float(np.abs(found.where).max()), float(found.most.max()))
    return all(
        bool((np.abs(answer[name] - found.where) <= found.most + rounding).all())
        for name in ("local_point", "snapshot") if name in answer
    )


@pytest.mark.parametrize("name", STEPPING)
@SETTINGS
@given(st.data())
def test_no_honest_step_ends_beyond_the_reach(loss_problems: Callable[..., Any], name: str, data: Any) -> None:
    boxed = not METHODS[name].ignores_radius and data.draw(st.sampled_from([False, False, True]))
    names = data.draw(st.sampled_from(BOXED if boxed else UNBOUNDED))
    problem, point = data.draw(loss_problems(names, ("box",) if boxed else ("free",)))
    message = message_of(data.draw, point, np.random.default_rng(data.draw(st.integers(0, 2**32 - 1))))
    parameters, spec = parameters_of(data.draw, name), problem.spec
    half: Any = METHODS[name].site
    found = reach(half, message, parameters, spec.loss, spec.radius, partial(highest, problem))
    number = data.draw(st.sampled_from([0, 0, 1, MOVES, MOVES + 1]))
    guard = None if number == 0 else AnyAnswer(number, data.draw(st.integers(0, 99)))
    answer = half.accounted(problem, message, parameters, guard).arrays
    assert found is None or held(found, answer), (found, answer)


@SETTINGS
@given(st.data())
def test_no_honest_step_of_a_softmax_ends_beyond_the_reach(data: Any) -> None:
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    features, labels = random.uniform(0, 1, (9, 2)), random.integers(0, 3, 9).astype(float)
    name = data.draw(st.sampled_from(["fedavg", "fedprox", "drflm", "scaffold"]))
    half: Any = replace(cast(LocalStepsSite, METHODS[name].site), objective=SoftmaxObjective(3))
    message = message_of(data.draw, random.normal(size=9), random)
    parameters, problem = parameters_of(data.draw, name), SiteProblem(features, labels, RobustSpec(0.0, 1.0, "l2"))
    found = reach(half, message, parameters, problem.spec.loss, 0.0, lambda _: math.inf)
    assert found is None or held(found, half.answer(problem, message, parameters))


def steps_of(**changes: float) -> Reach | None:
    message = {
        "point": np.array([2.0, 0.0]), "correction": np.array([0.5, 0.0]), "step_size": np.array(0.1),
        "centre": np.array([4.0, 0.0]), "penalty": np.array(2.0), "ridge": np.array(1.0),
        **{name: np.array(value) for name, value in changes.items()},
    }
    parameters = check_parameters(METHODS["fedavg"], {"epochs": 3.0, "batch": 0.5})
    return reach(METHODS["fedavg"].site, message, parameters, get_loss("hinge"), 0.0, lambda _: 1.0)


def test_the_reach_of_steps_is_their_number_times_the_steepest_gradient() -> None:
    found = steps_of()
    assert found is not None
    np.testing.assert_allclose(found.most, 0.1 * 3 * 4 * np.array([1.5, 1.0]))  # 4 batches of an epoch at most
    own = steps_of(own_control=1.0)
    assert own is not None
    np.testing.assert_allclose(own.most, 0.1 * 3 * 4 * np.array([2.5, 2.0]))
    assert _grown(0.5, 3) == 1.75 and _grown(1.0, 3) == 3.0 and _grown(0.0, 3) == 1.0 and _grown(1e9, 999) == math.inf


@pytest.mark.parametrize("name", ["fdr-admm", "fdr-admm-sc", "fdr-admm-reg"])
def test_the_reach_of_a_step_of_admm_is_the_steepest_slope_over_its_stiffness(name: str) -> None:
    """Also where the half restates the problem: trusted labels move no end farther."""
    message = {"centre": np.full(2, 100.0), "penalty": np.array(2.0), "ridge": np.array(1.0)}
    found = reach(METHODS[name].site, message, {}, get_loss("hinge"), 0.1, lambda _: 1.0)
    assert found is not None
    np.testing.assert_allclose(found.where, 50.0)
    np.testing.assert_allclose(found.most, 3e-3 * 3**6 * 100.0 + 2 * (1.1 + 0.2) / 4)


def test_without_a_lipschitz_constant_or_a_plane_no_reach_is_known() -> None:
    message = {"point": np.zeros(2), "correction": np.zeros(2), "step_size": np.array(0.1)}
    parameters = dict(METHODS["fedavg"].parameters)
    assert reach(METHODS["fedavg"].site, message, parameters, get_loss("squared"), 0.0, lambda _: 1.0) is None
    network = replace(cast(LocalStepsSite, METHODS["fedavg"].site), objective=NetworkObjective(2, 3))
    assert reach(network, message, parameters, get_loss("hinge"), 0.0, lambda _: 1.0) is None
    assert reach(METHODS["level-bundle"].site, message, {}, get_loss("hinge"), 0.1, lambda _: 1.0) is None


def test_a_step_from_beside_its_centre_starts_from_the_risk_there() -> None:
    """A guard moves the centre, and where risks are steep the one beside it is far above the one that was asked."""
    loss, size = get_loss("hinge"), 4
    steep = steepest_slope(loss, 0.1)
    aside = FIRST_MOVE * 3.0 ** (MOVES - 1)
    asked = {"centre": np.zeros(size), "point": np.zeros(size), "stiffness": np.array(2.0), "target": np.array(1.0)}

    def highest(weights: FloatArray) -> float:
        return 1.0 + steep * float(np.abs(weights).sum())

    found = reach(DrflSite(), asked, {}, loss, 0.1, highest)
    beside = np.full(size, aside)
    assert found is not None and (found.most >= aside + 2.0 * (highest(beside) - 1.0) * steep).all()
    twice = 2.0 * (steep + 2.0 * 0.1 * loss.lipschitz)
    np.testing.assert_allclose(found.most, aside + 2.0 * twice * size * aside * twice, rtol=1e-12)
