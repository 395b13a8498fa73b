"""A question with several points in a message: each is answered for itself, and words fit the question or are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.cohorts.fixed_point import to_words
from services.auditing.questions import Question, falsehood
from services.contracts.errors import InvalidInputError
from services.contracts.problems.training_spec import TrainingSpec

HERE, THERE = [1.0, -2.0, 0.5], [0.5, -1.0, 0.25]
SHAPES: dict[str, tuple[int, ...]] = {"risk": (1, 2), "cut_height": (1, 2), "slope": (1, 2, 3), "norm_weight": (1, 2)}


def told(number: int, points: list[list[float]], risks: list[float]) -> tuple[Question, Any]:
    """A round's question of two points, and words that tell a risk at each and flat cuts below both."""
    asked, low = np.array([points]), [min(risks)] * 2
    said = {"risk": np.array(risks), "cut_height": np.array(low), "slope": np.zeros((2, 3)), "norm_weight": np.zeros(2)}
    return Question("ab" * 16, "c" * 64, number, TrainingSpec(), SHAPES, asked), to_words(said, 1.0, asked[0])


def false(*rounds: tuple[Question, Any]) -> str:
    return falsehood([question for question, _ in rounds], [words for _, words in rounds])


def test_each_of_several_points_has_its_own_answer() -> None:
    question, words = told(1, [HERE, THERE], [0.5, 0.25])
    one, other = question.answers(words)
    assert one.asked["point"].tolist() == [HERE] and other.asked["point"].tolist() == [THERE]
    assert one.said["risk"][0] == pytest.approx(0.5) and other.said["risk"][0] == pytest.approx(0.25)
    assert one.said["slope"].shape == (1, 3) and one.when == other.when == "round 1"


def test_points_that_are_asked_again_in_another_order_are_held_each_to_its_own() -> None:
    first = told(1, [HERE, THERE], [0.5, 0.25])
    assert not false(first) and not false(first, told(2, [THERE, HERE], [0.25, 0.5]))
    found = false(first, told(2, [THERE, HERE], [0.5, 0.25]))
    assert "its risk at one point is" in found and "in round 1 and" in found and "in round 2" in found


def test_words_of_another_number_are_no_answer() -> None:
    question, words = told(1, [HERE, THERE], [0.5, 0.25])
    for changed in (words[:-1], np.append(words, words[:1]), words[:0]):
        with pytest.raises(InvalidInputError, match="words was due"):
            question.answers(changed)


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_a_question_whose_answers_are_of_other_points_is_none(name: str) -> None:
    question, _ = told(1, [HERE, THERE], [0.5, 0.25])
    assert Question.read(question.frame()).shapes == SHAPES
    for wrong in ((1, 3), (2, 2), (1,), ()):
        shapes = SHAPES | {name: (*wrong, *SHAPES[name][2:])}
        changed = Question(question.run_id, question.cohort, 1, question.spec, shapes, question.points)
        with pytest.raises(InvalidInputError, match="no question to a cohort"):
            Question.read(changed.frame())
