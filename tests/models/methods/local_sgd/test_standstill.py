"""A run of local steps whose sites are let out no step ends, and says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from models.basics import Arrays
from models.losses.catalogue import get_loss
from models.methods.catalogue import METHODS, get_method
from models.methods.guard import MOVES
from models.methods.local_sgd.objectives.network import NetworkObjective
from models.methods.local_sgd.scores_of_all import method_of
from models.methods.local_sgd.site import LocalStepsSite
from models.methods.local_sgd.standstill import MOST_STILL, STANDS_STILL, still_exchanges
from models.methods.local_sgd.uncertified import NO_CERTIFICATE
from models.problem import RobustSpec, ServerProblem, SiteProblem, SiteTerms, Status
from models.simulation.federation import Training, train

GUARDED = sorted(name for name, each in METHODS.items() if type(each.site) is LocalStepsSite)
RANDOM = np.random.default_rng(5)


class Shut:
    """A guard that lets no gradient leave, or none from its ``after`` th question on."""

    def __init__(self, after: int = 0) -> None:
        self._left = after

    def choose(self, question: bytes, candidate: Callable[..., Any], rows: Callable[..., Any]) -> Any:
        self._left -= 1
        return candidate(0 if self._left >= 0 else MOVES + 1, np.random.default_rng(0))


def sites() -> dict[str, SiteProblem]:
    spec = RobustSpec(loss=get_loss("smooth_hinge"), radius=0.0, label_flip_cost=np.inf)
    found = {}
    for g in range(3):
        features = RANDOM.normal(size=(20, 2))
        found[f"s{g}"] = SiteProblem(features, np.sign(features @ [1.0, -0.5] + RANDOM.normal(size=20)), spec)
    return found


def run(method: str, guards: dict[str, Shut], **more: Any) -> Training:
    return train(sites(), method=method, guards=guards, max_rounds=60, gap=1e-9, **more)


@pytest.mark.parametrize("method", GUARDED)
def test_a_run_without_steps_ends_after_ten_rounds_of_steps(method: str) -> None:
    ended = run(method, {f"s{g}": Shut() for g in range(3)})
    assert ended.status is Status.STALLED and STANDS_STILL in ended.note
    assert MOST_STILL <= ended.n_rounds <= 2 * MOST_STILL, "two exchanges a round at most"
    assert not ended.weights.any()


@pytest.mark.parametrize("method", ["fedavg", "scaffold", "drfa"])
def test_one_site_that_steps_keeps_it_going(method: str) -> None:
    ended = run(method, {"s0": Shut(), "s1": Shut()})
    assert ended.status is Status.ROUND_LIMIT and STANDS_STILL not in ended.note and ended.weights.any()


def test_what_stood_still_before_a_step_does_not_count() -> None:
    ended = run("fedavg", {f"s{g}": Shut(after=7) for g in range(3)})
    assert ended.status is Status.STALLED and ended.n_rounds == 7 + MOST_STILL


def untold(messages: dict[str, Arrays]) -> dict[str, Arrays]:
    """Answers of sites that tell their loss and no more."""
    told = {"risk": np.array(1.0), "cut_height": np.array(0.0), "norm_weight": np.array(0.0)}
    return {
        site: {**told, "slope": 0 * asked["point"], "local_point": asked["point"], "snapshot": asked["point"]}
        for site, asked in messages.items()
    }


def test_a_run_that_is_taken_up_again_stands_as_long_as_it_stood() -> None:
    server, terms = get_method("fedavg").server, tuple(SiteTerms(f"s{g}", 1 / 3, 0.0, np.inf) for g in range(3))
    problem = ServerProblem(2, terms, "l2", False, parameters=get_method("fedavg").parameters)
    state = server.init(problem)
    for count in range(1, MOST_STILL + 1):
        state = server.step(server.unpack(server.pack(state)), problem, untold(server.messages(state, problem)))
        assert (server.status(state, problem) is Status.STALLED) == (count == MOST_STILL)
    fewer = server.of_sites(state, problem, [0, 1, 2])
    assert server.status(fewer, problem) is Status.CONTINUE, "other sites may step"


def test_what_is_not_asked_or_not_answered_counts_neither_way() -> None:
    point = np.array([1.0, 2.0])
    asks = {"s0": {"point": point, "step_size": np.array(0.1)}, "s1": {"point": point, "step_size": np.array(0.0)}}
    stood = {"local_point": point}
    assert still_exchanges(4, asks, {"s0": stood, "s1": stood}) == 5
    assert still_exchanges(4, asks, {"s1": stood}) == 4 == still_exchanges(4, asks, {})
    assert still_exchanges(4, asks, {"s0": {"local_point": point + 1e-12}}) == 5, "the rounding of a sum"
    assert still_exchanges(4, asks, {"s0": {"local_point": point + 1e-10}}) == 0


def test_a_model_without_a_certificate_stands_still_as_well() -> None:
    objective = NetworkObjective(3, hidden=4, dropout=0.0)
    server = method_of(get_method("fedavg"), objective, 2, seed=0).server
    terms = tuple(SiteTerms(f"s{g}", 1 / 3, 0.0, np.inf) for g in range(3))
    problem = ServerProblem(objective.size(2), terms, "l2", False, parameters=get_method("fedavg").parameters)
    state = server.init(problem)
    for count in range(1, MOST_STILL + 1):
        state = server.step(server.unpack(server.pack(state)), problem, untold(server.messages(state, problem)))
        assert (server.status(state, problem) is Status.STALLED) == (count == MOST_STILL)
    assert server.note([state], problem) == f"{NO_CERTIFICATE}; {STANDS_STILL}"
