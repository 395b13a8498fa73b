"""What a server half gets of cohorts: of a part of one its cuts alone, or nothing; of the others all, in any order."""

from __future__ import annotations

import numpy as np
import pytest

from models.cohorts.fixed_point import to_words
from models.cohorts.sums import CohortSum, cohort_answers
from models.methods.catalogue import get_method

ANSWER = {"risk": np.array(0.5), "cut_height": np.array(0.5), "slope": np.array([0.25, -1.0])}
SHAPES = {name: array.shape for name, array in ANSWER.items()}
WORDS = to_words(ANSWER, 1.0, np.zeros(2))


@pytest.mark.parametrize("parted", [0, 1, 2])
def test_a_part_of_a_cohort_takes_nothing_from_the_others(parted: int) -> None:
    names = ["first", "second", "third"]
    sums = {name: CohortSum(WORDS, complete=place != parted) for place, name in enumerate(names)}
    whole = cohort_answers(get_method("fdr-sm"), sums, SHAPES)
    assert list(whole) == [name for place, name in enumerate(names) if place != parted]
    welcome = cohort_answers(get_method("level-bundle-plain"), sums, SHAPES)
    assert list(welcome) == names
    for place, name in enumerate(names):
        assert np.isnan(welcome[name]["risk"]) == (place == parted)
        np.testing.assert_allclose(welcome[name]["slope"], ANSWER["slope"])
