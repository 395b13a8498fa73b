"""Terms that a candidate may have."""

from __future__ import annotations

import math

import pytest

from models.basics import ProblemError
from models.tuning.candidates import Candidate, flips_order


def test_no_ball_over_the_sites_and_flips_at_no_price_short_of_any_are_terms() -> None:
    found = Candidate(0.5, math.inf, mixture_radius=0.0)
    assert (found.flips, found.mixture_radius) == (0.0, 0.0)
    assert Candidate(3.0, 1.5).flips == 2.0


@pytest.mark.parametrize(("terms", "said"), [
    ({"radius": 0.0}, "radius is a finite factor above 0, got 0.0"),
    ({"radius": math.inf}, "radius is a finite factor above 0, got inf"),
    ({"label_flip_cost": 0.0}, "label_flip_cost must be above 0, got 0.0"),
    ({"label_flip_cost": math.nan}, "label_flip_cost must be above 0, got nan"),
    ({"mixture_radius": -0.1}, "mixture radius must be at or above 0, got -0.1"),
    ({"mixture_radius": math.inf}, "mixture radius must be at or above 0, got inf"),
])
def test_terms_that_no_problem_has_are_refused(terms: dict[str, float], said: str) -> None:
    with pytest.raises(ProblemError, match=said):
        Candidate(**{"radius": 1.0, "label_flip_cost": 1.0, **terms})


def test_those_that_let_the_fewest_rows_flip_come_first_and_of_them_the_smallest_balls() -> None:
    radii = [Candidate(factor, factor) for factor in (3.0, 1.0, 2.0)]
    few, none = Candidate(5.0, 50.0), Candidate(9.0, math.inf)
    assert flips_order([*radii, few, none]) == [none, few, *sorted(radii, key=lambda each: each.radius)]
