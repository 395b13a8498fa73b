"""A model's losses, errors and, on sums, risks are told to four digits: all digits of a few models are a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from services.contracts.messages import SiteUpdate
from services.contracts.training_spec import TrainingSpec
from services.site_agent.held_out import rounded_down, rounded_up
from services.site_agent.vault.reader import Vault

BARE = TrainingSpec.model_validate({"radius": {"rule": "fixed", "value": 0.0}})


def test_four_digits_at_or_below_and_what_has_few_stays() -> None:
    values = np.array([0.0, 1.0, 0.3, 0.1, 1e-7, 123456.0, 2.99999, 0.00123456, 7e11, np.inf])
    found = rounded_down(values, 4)
    np.testing.assert_allclose(found, [0.0, 1.0, 0.3, 0.1, 1e-7, 123400.0, 2.999, 0.001234, 7e11, np.inf], rtol=1e-12)
    drawn = np.random.default_rng(0).lognormal(sigma=8.0, size=2000)
    told = rounded_down(drawn, 4)
    assert (told <= drawn * (1 + 1e-15)).all() and (told >= drawn * (1 - 1.0001e-3)).all()
    assert [f"{each:.3e}" for each in told] == [f"{float(f'{each:.3e}'):.3e}" for each in told]
    np.testing.assert_allclose(told, [float(f"{each:.3e}") for each in told], rtol=1e-12)


def test_four_digits_at_or_above_and_what_has_few_or_no_end_stays() -> None:
    values = np.array([0.0, 1.0, 0.3, 0.1, 1e-7, 123456.0, 2.99911, 0.00123456, np.inf])
    found = rounded_up(values, 4)
    np.testing.assert_allclose(found, [0.0, 1.0, 0.3, 0.1, 1e-7, 123500.0, 3.0, 0.001235, np.inf], rtol=1e-12)
    drawn = np.random.default_rng(1).lognormal(sigma=8.0, size=2000)
    told = rounded_up(drawn, 4)
    assert (told >= drawn * (1 - 1e-15)).all() and (told <= drawn * (1 + 1.0001e-3)).all()
    np.testing.assert_allclose(told, [float(f"{each:.3e}") for each in told], rtol=1e-12)


def test_the_risk_of_a_training_row_that_alone_has_a_loss_is_told_exactly_by_single_answers_only(
    make_site: Any, policy: Any
) -> None:
    """The same with the risk over the training rows, which a run on sums tells of whatever model it is asked at."""
    site = make_site(policy=policy.model_copy(update={"own_scores": True}))
    train = Vault(site.source, site.asset_type).current().train
    leaks = np.flatnonzero(train.classes == 1)
    lowest, second = leaks[np.argsort(train.features[leaks, 0])[:2]]
    place = float(train.features[[lowest, second], 0].mean())
    models = np.array([1e4, 0.0, 0.0, 1.0 - 1e4 * place]) + 0.5 * np.eye(4)
    scores = np.column_stack([train.features, np.ones(len(train))]) @ models.T
    signs = np.where(train.classes == 1, 1.0, -1.0)
    exact = np.maximum(0.0, 1.0 - signs[:, None] * scores).mean(axis=0)
    told: dict[str, list[float]] = {"sums": [], "each site": []}
    for reveal, risks in told.items():
        for weights in models:
            run = {"run_id": "1" * 32} if reveal == "sums" else {}
            answer = site.ask("evaluate", spec=BARE, arrays={"weights": weights[None]}, reveal=reveal, **run)
            assert isinstance(answer, SiteUpdate)
            risks.append(float(answer.arrays["risk"][0]))
    assert told["each site"] == pytest.approx(exact, rel=1e-12)
    assert told["sums"] == pytest.approx([float(f"{each:.3e}") for each in told["sums"]], rel=1e-12)
    ratio = np.array(told["sums"]) / exact
    assert (ratio >= 1.0).all() and (ratio <= 1.001).all() and not np.allclose(ratio, 1.0, rtol=1e-9)


def test_a_row_that_alone_has_a_loss_is_not_told_by_models_beside_one_another(make_site: Any) -> None:
    """Models that all rows but one pass: the loss is linear in that row, and D + 1 of them were the row."""
    site = make_site()
    test = Vault(site.source, site.asset_type).current().test
    leaks = np.flatnonzero(test.classes == 1)
    lowest, second = leaks[np.argsort(test.features[leaks, 0])[:2]]
    # Weights so steep that all leaks but the lowest are past the margin, and no healthy row has a loss.
    place = float(test.features[[lowest, second], 0].mean())
    kept = test.classes == 1
    steep = np.array([1e4, 0.0, 0.0, 1.0 - 1e4 * place])
    models = [steep + step for step in 0.5 * np.eye(4)]
    losses = []
    for weights in models:
        answer = site.ask("evaluate", spec=BARE, arrays={"weights": weights[None]})
        assert isinstance(answer, SiteUpdate)
        losses.append(float(answer.arrays["loss"]))
    scores = np.column_stack([test.features, np.ones(len(test))]) @ np.array(models).T
    exact = np.maximum(0.0, 1.0 - np.where(kept, 1.0, -1.0)[:, None] * scores).mean(axis=0)
    others = np.maximum(0.0, 1.0 + scores[~kept]).sum(axis=0)
    assert not np.allclose(losses, exact, rtol=1e-9) and losses == pytest.approx(exact, rel=1e-3)

    def row_of(means: Any) -> np.ndarray:
        """The row with its 1, from the losses and the part that is not its own."""
        return np.asarray(np.linalg.solve(np.array(models), 1.0 - (np.asarray(means) * len(test) - others)))

    true = np.append(test.features[lowest], 1.0)
    assert np.abs(row_of(exact) - true).max() < 1e-6, "with all digits it was"
    assert np.abs(row_of(losses) - true).max() > 0.01
