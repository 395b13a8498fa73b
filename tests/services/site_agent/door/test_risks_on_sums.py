"""A risk on sums beside a cut that is not the exact one: above the exact one, so that risks together are no row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from models.basics import FloatArray
from models.cohorts.fixed_point import from_words, word_count
from services.contracts.problems.training_spec import TrainingSpec
from tests.services.site_agent.party import Party, first_question

QUESTIONS = {"questions": 8.0}
BARE = TrainingSpec.model_validate({"radius": {"rule": "fixed", "value": 0.0}, "label_flip_cost": 1e300})


def test_eight_questions_on_either_side_of_a_rows_kink_are_not_the_row(new_party: Callable[..., Party]) -> None:
    """D points that one row more does not pass, and D that it passes: with exact risks they were the row."""
    party = new_party(exposure_limit=0.0)
    party.agree()
    train = party.site.door._vault.current().train
    rows, signs = np.column_stack([train.features, np.ones(len(train))]), np.where(train.classes == 1, 1.0, -1.0)
    lowest, second = np.argsort(-train.features[:, 0])[:2]
    assert signs[lowest] == 1, "of the class that the others pass, while all of the other class have a loss"
    first, gap = -train.features[lowest, 0], train.features[lowest, 0] - train.features[second, 0]
    points = np.array([
        [-1e3, 0.0, 0.0, 1.0 - 1e3 * place] + 0.5 * step
        for place in (first - 0.1 * gap, first + 0.5 * gap) for step in np.eye(4)
    ])
    message, shapes = first_question(questions=8)
    told = from_words(
        party.sum("round", 1, message | {"points": points[None]}, word_count(shapes), spec=BARE, parameters=QUESTIONS),
        shapes,
    )
    risks, heights = 4 * told["risk"][0], 4 * told["cut_height"][0]
    exact = np.maximum(0.0, 1.0 - signs * (points @ rows.T)).mean(axis=1)
    assert (risks >= exact - 1e-9).all(), "a bound all the same"
    assert (risks <= exact + (exact - heights) + 1e-6).all(), "and no further off than the cut"

    def row_of(risks: FloatArray) -> FloatArray:
        """What one row adds to the mean, from the part of all others, which is linear in the weights."""
        known = points + np.array([0.0, 0.0, 0.0, 1.0])
        adds = risks[4:] - known[4:] @ np.linalg.solve(known[:4], risks[:4])
        found = np.linalg.solve(np.array([0.0, 0.0, 0.0, 1.0]) - points[4:], adds)
        return np.asarray(found / found[-1])

    assert np.abs(row_of(exact) - rows[lowest]).max() < 1e-6, "with the exact risks it was"
    assert np.abs(row_of(risks) - rows[lowest]).max() > 0.01
