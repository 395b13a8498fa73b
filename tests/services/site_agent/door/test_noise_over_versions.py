"""What a plant's limit on what is told of a row holds against: tunings, which have no noise, and rows that stay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.cohorts.accountant import rho_of
from services.contracts.problems.noise import CohortNoise
from services.contracts.problems.training_spec import RadiusRule, TrainingSpec
from services.masking.unmasking import deliveries
from tests.services.site_agent.noisy_party import POINT, NoisyParty, words


def test_a_tuning_has_no_noise_and_is_refused_where_a_policy_limits_what_is_told(
    new_noisy_party: Callable[..., NoisyParty]
) -> None:
    """Its cuts went out under the masks of the cohort with noise, exact and charged to nobody."""
    asked: dict[str, Any] = {
        "spec": TrainingSpec(radius=RadiusRule(rule="fixed", value=0.001)), "arrays": {"point_0": np.zeros((1, 4))},
        "tuning": {
            "folds": 3, "seed": 5, "lifts": [None], "scored": False,
            "parts": [{"radius": 1.0, "label_flip_cost": 1.0, "lift": 0, "fold": 0}],
        },
    }
    party = new_noisy_party(noise_epsilon=3.0)
    party.agree()
    given = deliveries(party.cohort, 1, party.prepare(1))["plant-1"]
    assert party.ask("tune", given, round=1, **asked).code == "noise_limit"


@pytest.mark.parametrize("changed", ["order", "more", "fewer", "label"])
def test_rows_that_stay_are_told_of_by_the_answers_about_all_versions_of_the_data(
    new_noisy_party: Callable[..., NoisyParty], write_csv: Callable[..., Path], make_table: Any, changed: str
) -> None:
    """One row more, or the same ones in another order, began the account of all of them anew."""
    header, *rows = make_table(100)
    later = {
        "order": rows[::-1], "more": [*rows, [55.5, 1.5, 2.5, "leak"]], "fewer": rows[2:],
        "label": [[*rows[0][:3], "leak"], *rows[1:]],
    }[changed]
    party = new_noisy_party(noise_epsilon=3.0)
    party.renew(3, CohortNoise(row_share=0.05, honest=2, rho=0.02))
    party.agree()
    most = int(rho_of(3.0, 1e-6) / 0.02)
    for number in range(1, most):
        words(party, number)
    before = party.digest()
    party.site.restarted(source=party.site.source.model_copy(update={"path": write_csv([header, *later], "later.csv")}))
    assert party.digest() != before and party.told() == 0.0
    party.renew(4, CohortNoise(row_share=0.05, honest=2, rho=0.02))
    party.agree()
    words(party, most)
    assert party.told() == pytest.approx(0.02), "the account of a version has what was told about it"
    given = deliveries(party.cohort, most + 1, party.prepare(most + 1))["plant-1"]
    assert party.ask("round", given, round=most + 1, arrays=POINT).code == "noise_limit"


def test_other_rows_have_an_account_of_their_own(
    new_noisy_party: Callable[..., NoisyParty], write_csv: Callable[..., Path], make_table: Any
) -> None:
    party = new_noisy_party(noise_epsilon=3.0)
    party.renew(3, CohortNoise(row_share=0.05, honest=2, rho=0.15))
    party.agree()
    words(party, 1)
    later = write_csv(make_table(100, seed=3), "later.csv")
    party.site.restarted(source=party.site.source.model_copy(update={"path": later}))
    party.renew(4, CohortNoise(row_share=0.05, honest=2, rho=0.15))
    party.agree()
    words(party, 2)
