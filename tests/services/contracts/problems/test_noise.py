"""A plan's noise is a budget that a version states as it was spent."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from models.basics import ProblemError
from services.contracts.errors import InvalidInputError
from services.contracts.problems.noise import NoisePromise, NoiseSpec


def test_a_promise_is_of_the_rounds_that_were_run() -> None:
    spec = NoiseSpec(epsilon=2.0, rounds=10)
    plan = spec.plan(heads=4, cohorts=2)
    promises = [NoisePromise.of(spec, plan, rounds) for rounds in (3, 10)]
    assert 0 < promises[0].epsilon < promises[1].epsilon <= 2.0 == pytest.approx(promises[1].epsilon)
    assert promises[0].rounds == 3 and promises[0].model_dump() == NoisePromise.model_validate(
        promises[0].model_dump(mode="json")
    ).model_dump()
    assert spec.plan(heads=1, cohorts=2).rho == pytest.approx(4 * plan.rho)
    assert spec.plan(heads=4, cohorts=3).deviations > plan.deviations
    with pytest.raises(ProblemError, match="round 11"):
        NoisePromise.of(spec, plan, 11)


def test_noise_of_plants_in_league_does_not_count() -> None:
    assert [NoiseSpec(epsilon=1.0, in_league=each).honest(3) for each in (0, 2)] == [3, 1]
    with pytest.raises(InvalidInputError, match="noise of nobody is left: rounds need 3 answers"):
        NoiseSpec(epsilon=1.0, in_league=3).honest(3)


@pytest.mark.parametrize("change", [
    {"in_league": -1}, {"epsilon": 0.0}, {"epsilon": float("inf")}, {"delta": 0.0}, {"delta": 0.1}, {"confidence": 0.4},
    {"confidence": 1.0}, {"rounds": 0}, {"within": 0.0}, {"sigma": 1.0},
])
def test_a_budget_that_is_none_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        NoiseSpec.model_validate({"epsilon": 1.0, **change})
