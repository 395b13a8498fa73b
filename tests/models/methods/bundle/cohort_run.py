"""Plants in cohorts, round by round, and the optimum that the certificate of their sums must bracket."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

import numpy as np
import pytest

from models.basics import TransportNorm
from models.cohorts.dealing import cohort_problem
from models.geometry.supports import BoxSupport
from models.losses.catalogue import get_loss
from models.methods.catalogue import check_parameters, get_method
from models.problem import Certificate, RobustSpec, ServerProblem, SiteProblem, Status
from models.simulation.cohort_rounds import CohortRounds

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
