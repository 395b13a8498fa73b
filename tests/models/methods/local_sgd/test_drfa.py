"""How many steps DRFA takes a round for: those that its sites take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.cuts.evidence import with_answers
from models.losses.catalogue import get_loss
from models.methods.catalogue import get_method
from models.methods.local_sgd.drfa import DrfaRule
from models.problem import RobustSpec, SiteProblem
from models.simulation.federation import server_problem, train

SITE = SiteProblem(
    np.random.default_rng(0).uniform(size=(60, 2)), np.where(np.arange(60) % 2 == 0, 1.0, -1.0),
    RobustSpec(0.0, 1.0, loss=get_loss("logistic")),
)


@pytest.mark.parametrize(
    ("numbers", "steps"),
    [({"local_steps": 7}, 7), ({"local_steps": 0, "epochs": 3, "batch": 1.0}, 3),
     ({"local_steps": 0, "epochs": 3, "batch": 0.2}, 15), ({"local_steps": 0, "epochs": 2, "batch": 0.35}, 6)],
)
def test_the_mixture_moves_for_as_many_steps_as_a_site_takes(numbers: dict[str, float], steps: int) -> None:
    """A snapshot after more steps than there are is where they end."""
    method = get_method("drfa")
    problem = server_problem({"a": SITE}, None, method, numbers, 1e-3)
    assert DrfaRule().steps(problem) == steps
    message = {
        "point": np.ones(3), "correction": np.zeros(3), "step_size": np.array(0.1), "draw": np.array(1.0),
    }
    ends = [
        method.site.answer(SITE, {**message, "snapshot_step": np.array(float(after))}, problem.parameters)
        for after in (steps - 1, steps)
    ]
    assert not np.array_equal(ends[0]["snapshot"], ends[0]["local_point"])
    np.testing.assert_array_equal(ends[1]["snapshot"], ends[1]["local_point"])


@pytest.mark.parametrize("name", ["drfa", "safl"])
def test_the_first_lower_bound_is_of_a_mixture_that_the_worst_share_allows(name: str) -> None:
    """Weights that give one plant more than its share bound another objective, which may be above this one's least."""
    method, shares = get_method(name), {"a": 0.8, "b": 0.1, "c": 0.1}
    problem = server_problem(dict.fromkeys(shares, SITE), shares, method, {"worst_share": 1.0}, 1e-3)
    server: Any = method.server
    begun = server.rule.begin(problem, np.zeros(3))
    for mixture in ("lambda", "shares"):
        np.testing.assert_allclose(begun[mixture], np.full(3, 1 / 3))


def test_a_site_that_is_away_counts_by_its_cuts_at_the_points_that_it_was_not_asked_at() -> None:
    """Else no point of a round with one away would be the best, and the upper bound stand still until it is back."""
    method = get_method("drfa")
    problem = server_problem({"a": SITE, "b": SITE}, None, method, {"worst_share": 0.5}, 1e-3)
    server: Any = method.server

    def told(**risks: float) -> dict[str, Any]:
        return {
            name: {"risk": np.array(risk), "cut_height": np.array(risk), "slope": np.zeros(3),
                   "norm_weight": np.array(0.0)}
            for name, risk in risks.items()
        }

    state = server.init(problem)
    evidence = with_answers(state.evidence, problem, np.zeros(3), told(a=0.7, b=0.4))
    evidence = with_answers(evidence, problem, np.ones(3), told(a=0.5))
    found = server.bounded(evidence, problem, state.memory, raised=False)
    assert found.upper == pytest.approx(0.5) and found.best_point.tolist() == [1.0, 1.0, 1.0]


def test_the_lower_bound_is_raised_at_the_first_twenty_points_and_at_every_tenth_after(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a cone program that grows with the rounds; a run that ends by its certificate needs the later ones too."""
    raised = list[int]()

    def noting(evidence: Any, problem: Any) -> Any:
        raised.append(len(evidence.points))
        return evidence, None

    monkeypatch.setattr("models.methods.local_sgd.server.tighten_lower_bound", noting)
    assert train({"a": SITE}, method="fedavg", gap=1e-12, max_rounds=41).n_rounds == 41
    assert raised == [*range(1, 21), 30, 40]


def test_a_round_of_two_exchanges_ends_with_the_mixture_that_its_losses_make() -> None:
    """The next round draws anew and steps by its own number, and the lower bound is of the mixture as it is now."""
    method = get_method("drfa")
    numbers = {"mixture_step": 0.1, "local_steps": 2}
    problem = server_problem({"a": SITE, "b": SITE}, None, method, numbers, 1e-3)
    rule = DrfaRule()
    memory = rule.begin(problem, np.zeros(3))
    ends = {"a": np.full(3, 1.0), "b": np.full(3, 3.0)}
    stepped = {name: {"local_point": end, "snapshot": end} for name, end in ends.items()}
    told = {name: {"risk": np.array(risk)} for name, risk in (("a", 0.3), ("b", 0.8))}
    for number in range(3):
        assert float(memory["round"]) == number and not memory["telling"]
        memory = rule.advance(memory, problem, stepped)
        assert float(memory["round"]) == number and memory["telling"]
        memory = rule.advance(memory, problem, told)
        np.testing.assert_array_equal(memory["shares"], memory["lambda"])
    np.testing.assert_allclose(memory["lambda"], [0.5 - 3 * 0.05, 0.5 + 3 * 0.05])
