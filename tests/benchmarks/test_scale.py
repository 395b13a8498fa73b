"""The measurement over many plants counts what it says: plants that stand for several, and delays as stated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.cohorts.dealing import cohort_problem
from models.methods.catalogue import check_parameters, get_method
from models.simulation.cohort_rounds import CohortRounds
from tests.benchmarks.scale.fleet import Fleet
from tests.benchmarks.scale.network import Network
from tests.benchmarks.scale.page import COLUMNS, page_text

METHOD = get_method("cohort-bundle")


def test_a_plant_that_stands_for_several_is_counted_as_often() -> None:
    """Against a simulation that asks every plant, the copies having the rows of those that they are copies of."""
    fleet = Fleet.drawn(14, 7, 3)
    assert [len(members) for members in fleet.cohorts.values()] == [7, 7] and len(fleet.sites) == 6
    copies = {
        site: fleet.sites[fleet.kinds[cohort][place % 3]]
        for cohort, members in fleet.cohorts.items() for place, site in enumerate(members)
    }
    problem = replace(fleet.problem, parameters=check_parameters(METHOD, {}))
    summed = cohort_problem(problem, fleet.cohorts)
    shapes = METHOD.server.answer_shapes(summed.dimension, 0, summed.parameters)
    every, state = CohortRounds(METHOD, copies, problem, fleet.cohorts), METHOD.server.init(summed)
    for _ in range(3):
        messages = METHOD.server.messages(state, summed)
        ours, theirs = fleet.answers(METHOD, summed, messages, shapes), every.answers(messages, shapes)
        for cohort in fleet.cohorts:
            for name, array in theirs[cohort].items():
                assert ours[cohort][name] == pytest.approx(array, rel=1e-9, abs=1e-9), name  # shares but for a bit
        state = METHOD.server.step(state, summed, ours)


def test_an_exchange_waits_for_the_slowest_and_for_the_lines() -> None:
    network, random = Network(), np.random.default_rng(0)
    alone = np.mean([network.exchange(1, 0, random) for _ in range(4000)])
    assert alone == pytest.approx(0.06 * np.exp(0.7**2 / 2), rel=0.05), "mean of the stated log-normal"
    assert np.mean([network.exchange(1000, 0, random) for _ in range(50)]) > 5 * alone
    still = Network(delay_sigma=0.0, slowness_sigma=0.0)
    assert still.exchange(1000, 125_000, random) == pytest.approx(0.06 + 0.1 + 1.0)
    assert still.solve(3, np.array([0.01, 0.01]), random) == pytest.approx(0.01)


def test_the_page_says_what_is_modelled_and_where_the_wall_is() -> None:
    row = dict.fromkeys(COLUMNS, 1.0) | {"plants": 1000, "wall": "server masks"}
    for html in (False, True):
        text = page_text([row], Network(), html=html)
        assert "1000 plants: the wall is server masks" in text and "log-normal, median 60 ms, sigma 0.7" in text
