"""The price of one training is what its messages and answers hold."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from models.methods.catalogue import get_method
from models.problem import SiteProblem
from models.simulation.federation import server_problem
from models.tuning.reference import one_training


@pytest.mark.parametrize("name", ["level-bundle", "level-bundle-plain", "fdr-admm"])
@pytest.mark.parametrize("heads", [1, 4])
def test_a_training_costs_what_all_its_rounds_and_heads_send_and_are_sent(
    make_sites: Callable[..., dict[str, SiteProblem]], name: str, heads: int
) -> None:
    sites, method = make_sites(), get_method(name)
    problem = server_problem(sites, None, method, {}, 1e-3)
    state = method.server.init(problem)
    for _ in range(2):
        messages = method.server.messages(state, problem)
        answers = {site: method.site.answer(sites[site], messages[site], problem.parameters) for site in sites}
        numbers = {sum(array.size for array in (*messages[site].values(), *answers[site].values())) for site in sites}
        found = one_training(method, problem, heads, 7)
        assert (found.rounds, {found.numbers}) == (7, {heads * 7 * each for each in numbers}), "in every round as many"
        state = method.server.step(state, problem, answers)
