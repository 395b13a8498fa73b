"""A training on noisy sums in one process: which noise each cohort is told of, where it asks, and when it ends."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from models.cohorts.noise import NoisePlan, NoiseTerms, noisy_words
from models.cohorts.noisy_bounds import bounded_answer
from models.problem import RobustSpec, SiteProblem
from models.simulation import noisy_rounds
from models.simulation.noisy_rounds import train_with_noise

ROWS = {"a": 100, "b": 200, "c": 50, "d": 80, "e": 300, "f": 120}
WEIGHTS = {"a": 0.2, "b": 0.1, "c": 0.1, "d": 0.3, "e": 0.2, "f": 0.1}
COHORTS = {"one": ("a", "b", "c"), "two": ("d", "e", "f")}
PLAN = NoisePlan(50.0, 1e-5, 0.95, 4, 0.5)


def plants() -> dict[str, SiteProblem]:
    found = {}
    for seed, (name, count) in enumerate(ROWS.items()):
        draw = np.random.default_rng(seed)
        x = draw.uniform(size=(count, 2))
        labels = np.where(x[:, 0] - x[:, 1] + 0.1 * draw.normal(size=count) > 0, 1.0, -1.0)
        found[name] = SiteProblem(x, labels, RobustSpec(0.01 * (1 + seed), 1.0))
    return found


class Noted:
    """What the rounds asked the plants, and said of their sums."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.asked, self.told = list[tuple[Any, ...]](), list[tuple[Any, ...]]()

        def noted_words(*given: Any) -> Any:
            self.asked.append(given)
            return noisy_words(*given)

        def noted_answer(*given: Any, **more: Any) -> Any:
            self.told.append((*given, more["complete"]))
            return bounded_answer(*given, **more)

        patch.setattr(noisy_rounds, "noisy_words", noted_words)
        patch.setattr(noisy_rounds, "bounded_answer", noted_answer)


@pytest.mark.parametrize("honest", [None, 2, 9])
def test_every_cohort_has_the_noise_of_its_own_rows(honest: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the row that counts most in it; as many honest plants as are said, at most all; chances over all cohorts."""
    noted, sites = Noted(monkeypatch), plants()
    found = train_with_noise(
        sites, COHORTS, PLAN, random.Random(0).randrange, weights=WEIGHTS, honest=honest, gap=0.0
    )
    assert found.rounds == 4 and found.epsilon == PLAN.spent(4) and len(noted.asked) == 24 and len(noted.told) == 8
    shares = {g: WEIGHTS[g] / sum(WEIGHTS[each] for each in own) for own in COHORTS.values() for g in own}
    largest = {"one": max(shares[g] / ROWS[g] for g in "abc"), "two": max(shares[g] / ROWS[g] for g in "def")}
    own_terms = {name: NoiseTerms(largest[name], min(honest or 3, 3), PLAN.rho) for name in COHORTS}
    names = {id(site): name for name, site in sites.items()}
    for problem, point, share, terms, _ in noted.asked:
        name = names[id(problem)]
        cohort = "one" if name in "abc" else "two"
        assert share == pytest.approx(shares[name]) and np.linalg.norm(point) <= PLAN.within * (1 + 1e-12)
        assert terms.honest == own_terms[cohort].honest and terms.rho == PLAN.rho
        assert terms.row_share == pytest.approx(own_terms[cohort].row_share)
    for number, (_, point, problem, _, plan, terms, present, radii, complete) in enumerate(noted.told):
        cohort = ("one", "two")[number % 2]
        assert plan.cohorts == 2 and complete and set(present) == set(COHORTS[cohort])
        assert terms.row_share == pytest.approx(largest[cohort]) and radii["c"] == pytest.approx(0.03)
        assert (point == noted.asked[6 * (number // 2)][1]).all() and len(problem.sites) == 2
    assert max(float(np.linalg.norm(point)) for _, point, *_ in noted.asked) == pytest.approx(PLAN.within)


def test_walls_stand_from_the_start_and_rounds_end_at_the_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without walls the bound would speak of all weights, which no noisy plane bounds."""
    noted = Noted(monkeypatch)
    found = train_with_noise(plants(), COHORTS, PLAN, random.Random(0).randrange, weights=WEIGHTS, gap=0.999)
    assert found.rounds == len(noted.told) // 2 < 4 and found.certificate.gap <= 0.999
    assert found.epsilon == PLAN.spent(found.rounds) < PLAN.spent(4)
    assert found.proof is not None and (found.proof.rounds == 0.0).any()  # walls came before the first round
