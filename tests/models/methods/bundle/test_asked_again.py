"""Sites that answer nothing new: what is asked next is another point, not the same one for ever."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.basics import FloatArray
from models.cuts.evidence import Evidence
from models.methods.bundle.level import not_again
from models.methods.catalogue import check_parameters, get_method
from tests.models.cuts.told import NAMES, problem_of
from tests.models.methods.bundle.test_from_a_champion import four_plants

EXACT, AFTER = 4, 12


def points_asked(method: str, exact: int) -> FloatArray:
    """Points (R, D) that a run asks of sites whose cuts say nothing after so many rounds."""
    found, plants = get_method(method), four_plants(0)
    sites = dict(zip(NAMES, [*plants.values(), *plants.values()], strict=False))
    problem = problem_of(parameters=check_parameters(found, {}))
    problem = replace(problem, n_features=8)
    state, points = found.server.init(problem), []
    for number in range(EXACT + AFTER):
        messages = found.server.messages(state, problem)
        answers = {name: dict(found.site.answer(sites[name], messages[name], problem.parameters)) for name in NAMES}
        if number >= exact:
            for answer in answers.values():
                for name in answer:
                    answer[name] = answer[name] if name == "risk" else np.zeros_like(answer[name])
        points.append(messages[NAMES[0]]["point"])
        state = found.server.step(state, problem, answers)
    return np.array(points)


@pytest.mark.parametrize("method", ["level-bundle", "level-bundle-plain"])
def test_no_point_is_asked_twice_though_no_cut_says_anything(method: str) -> None:
    points = points_asked(method, EXACT)
    assert len(np.unique(points, axis=0)) == EXACT + AFTER
    best_to_last = np.linalg.norm(points[EXACT + 1 :] - points[EXACT], axis=1)
    assert best_to_last.max() <= 4 * np.linalg.norm(points[:EXACT], axis=1).max(), "on the way, not beyond"


def test_what_was_not_asked_is_asked_as_it_is() -> None:
    problem = problem_of()
    empty = Evidence.empty(problem)
    point = np.array([0.3, -0.2, 1.0])
    assert not_again(point, empty) is point
    asked = Evidence(**{**vars(empty), "points": np.array([[0.3, -0.2, 0.5], [0.0, 0.0, 0.0]]), "best": 1})
    assert not_again(point, asked) is point
    again = Evidence(**{**vars(empty), "points": np.array([point, np.zeros(3)]), "best": 1})
    between = not_again(point, again)
    share = between[2]
    assert 0.0 < share < 1.0 and np.allclose(between, share * point)
