"""Methods by name and what their parameters may be."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from models.basics import ProblemError
from models.geometry.supports import BoxSupport
from models.losses.catalogue import get_loss
from models.losses.classification import Hinge
from models.methods import site_answers
from models.methods.catalogue import METHODS, RANGES, check_method_problem, check_parameters, get_method
from models.methods.protocol import SupportKind
from models.methods.splitting import ad_lpmm_site
from models.problem import RobustSpec, SiteProblem
from models.prox.solution import ProxSolution
from models.simulation.federation import train
from models.site_ambiguity.ball import MixtureBall


def test_names_and_defaults() -> None:
    assert set(METHODS) >= {"level-bundle", "level-bundle-plain", "fdr-sm", "fdr-admm", "fdr-admm-sc", "fdr-admm-reg"}
    for name, method in METHODS.items():
        assert get_method(name) is method and method.name == name
        assert check_parameters(method, {}) == dict(method.parameters)
        for parameter, value in method.parameters.items():
            assert value in RANGES[parameter]


def test_given_parameters_win() -> None:
    assert check_parameters(get_method("fdr-admm"), {"rho": 0.5}) == {"rho": 0.5, "mu0": 1.0}


@pytest.mark.parametrize(
    ("name", "given", "text"),
    [
        ("fdr-admm", {"level": 0.5}, "method fdr-admm has no parameter 'level'; its parameters are mu0, rho"),
        ("fdr-admm", {"rho": 0.0}, "parameter rho of method fdr-admm must be above 0, got 0"),
        ("fdr-admm", {"rho": math.nan}, "must be above 0, got nan"),
        ("fdr-admm", {"rho": math.inf}, "must be above 0, got inf"),
        ("fdr-admm-sc", {"tau": -1.0}, "must be at or above 0, got -1"),
        ("level-bundle", {"level": 1.0}, "must be above 0 and at most 0.95, got 1"),
        ("fdr-sm", {"step_power": 2.0}, "must be at or above 0 and at most 1, got 2"),
    ],
)
def test_refused_in_one_line(name: str, given: dict[str, float], text: str) -> None:
    with pytest.raises(ProblemError) as refusal:
        check_parameters(get_method(name), given)
    assert text in str(refusal.value) and "\n" not in str(refusal.value)


def test_unknown_method_lists_the_known_ones() -> None:
    with pytest.raises(ProblemError, match="no method 'fdr'; methods are .*level-bundle"):
        get_method("fdr")


def test_a_support_is_refused_where_the_method_has_no_use_for_it() -> None:
    box = BoxSupport(np.zeros(2), np.ones(2))
    site = SiteProblem(np.full((4, 2), 0.5), np.tile([-1.0, 1.0], 2), RobustSpec(0.05, 1.0, support=box))
    with pytest.raises(ProblemError, match="method wafl is for features without bounds: leave the support out"):
        train({"a": site}, method="wafl")


WORST_CASE = [name for name, method in METHODS.items() if method.site_solver.startswith("{risk}")]
"""Methods that meet the rows through the exact worst case; the others take gradient steps."""
BOXED = [(name, True) for name in WORST_CASE if not METHODS[name].needs_unbounded]


@pytest.mark.parametrize(("name", "boxed"), [*((name, False) for name in WORST_CASE), *BOXED])
def test_every_method_names_what_solves_it_and_that_is_what_runs(
    name: str, boxed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: set[str] = set()

    def noted(solve: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            solution = solve(*args, **more)
            ran.add(solution.solver if isinstance(solution, ProxSolution) else "local bundle of exact cuts")
            return solution

        return call

    where = [(site_answers, each) for each in ("robust_prox", "local_minorant", "local_prox")]
    for module, each in [*where, (ad_lpmm_site, "local_step")]:
        monkeypatch.setattr(module, each, noted(getattr(module, each)))
    draw = np.random.default_rng(1)
    box = BoxSupport(np.zeros(2), np.ones(2)) if boxed else None
    site = SiteProblem(draw.uniform(size=(12, 2)), np.tile([-1.0, 1.0], 6), RobustSpec(0.05, 1.0, support=box))
    train({"a": site}, method=name, max_rounds=3, gap=1e-12)
    names = METHODS[name].solver_names(loss=Hinge(), support="box" if boxed else "unbounded")
    assert names[0].startswith("exact worst case")
    known = {"local bundle of exact cuts": "local bundle"}
    for solver in ran:
        part = known.get(names[1])
        assert part in solver if part else ("active set" in solver or "interior point" in solver), (names, solver)
    assert bool(ran) == (len(names) == 2)


@pytest.mark.parametrize(
    ("name", "loss", "support", "names"),
    [
        ("level-bundle", "huber", "unbounded", ("exact worst case in closed form", "local bundle of exact cuts")),
        ("level-bundle", "logistic", "unbounded", ("exact worst case by selection", "local bundle of exact cuts")),
        ("level-bundle", "pinball", "box", ("exact worst case by price search", "local bundle of exact cuts")),
        ("fdr-sm", "hinge", "polytope", ("worst case on a polytope by CVXPY with Clarabel",)),
        (
            "drfl-admm", "hinge", "polytope",
            ("worst case on a polytope by CVXPY with Clarabel", "local bundle of exact cuts"),
        ),
        ("standard", "pinball", "box", ("exact worst case in closed form", "local bundle of exact cuts")),
        ("fedavg", "logistic", "unbounded", ("exact mean loss and gradient, then gradient steps",)),
    ],
)
def test_solvers_are_those_of_the_loss_and_the_support(
    name: str, loss: str, support: SupportKind, names: tuple[str, ...]
) -> None:
    assert METHODS[name].solver_names(loss=get_loss(loss), support=support) == names


@pytest.mark.parametrize(
    ("value", "said"),
    [(True, "must be a number, got True"), (10**400, "must be above 0, got inf"), (-(10**400), "above 0, got -inf")],
)
def test_a_parameter_that_is_no_float_is_refused_by_its_name(value: float, said: str) -> None:
    with pytest.raises(ProblemError, match=f"parameter rho of method fdr-admm .*{said}"):
        check_parameters(get_method("fdr-admm"), {"rho": value})


def test_a_loss_without_a_worst_case_goes_with_the_methods_that_have_no_ball() -> None:
    free = {name for name, method in METHODS.items() if method.ignores_radius}
    assert {"standard", "afl", "drfa-exact", "fedavg"} <= free and "level-bundle" not in free
    for name, method in METHODS.items():
        if name in free:
            check_method_problem(method, MixtureBall(), loss=get_loss("squared"))
        else:
            with pytest.raises(ProblemError, match=f"squared loss has no worst case over a ball.* not {name}, or"):
                check_method_problem(method, MixtureBall(), loss=get_loss("squared"))
