"""A model's losses, errors and, on sums, risks are told to four digits: all digits of a few models are a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.wire.messages import SiteUpdate
from services.coordinator.asking.plausibility import doubt
from services.site_agent.limits.row_reach import row_reach
from services.site_agent.limits.told_steps import rounded_down, rounded_up, told_down, told_up
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
    above = np.array(told["sums"]) - exact
    steps = np.array([row_reach(each[None], BARE, site.asset_type).risk[0] for each in models]) / (500 * len(train))
    assert (above >= 0.0).all() and (above <= 2 * steps + 1e-3 * exact).all() and (above > 1e-3 * exact).any()


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
    assert not np.allclose(losses, exact, rtol=1e-9)
    assert losses == pytest.approx(exact, rel=1e-3, abs=2e4 / (500 * len(test)))

    def row_of(means: Any) -> np.ndarray:
        """The row with its 1, from the losses and the part that is not its own."""
        return np.asarray(np.linalg.solve(np.array(models), 1.0 - (np.asarray(means) * len(test) - others)))

    true = np.append(test.features[lowest], 1.0)
    assert np.abs(row_of(exact) - true).max() < 1e-6, "with all digits it was"
    assert np.abs(row_of(losses) - true).max() > 0.01


def test_no_step_is_below_a_five_hundredth_of_what_a_row_may_add() -> None:
    small = np.array([0.0, 1e-9, 3e-4, 0.12346])
    np.testing.assert_allclose(told_down(small, 0.5, 0.0), [0.0, 0.0, 0.0, 0.123], rtol=1e-12)
    np.testing.assert_allclose(told_up(small, 0.5, 0.0), [0.0, 1e-3, 1e-3, 0.124], rtol=1e-12)
    np.testing.assert_allclose(told_down(small, 1e-3, 0.0), [0.0, 0.0, 3e-4, 0.1234], rtol=1e-12)
    drawn, random = np.random.default_rng(2).lognormal(sigma=4.0, size=2000), np.random.default_rng(3)
    for reach in (0.0, 1e-3, 0.3, 40.0):
        share = random.uniform()
        below, above = drawn - told_down(drawn, reach, share), told_up(drawn, reach, share) - drawn
        for off in (below, above):
            assert (off >= -1e-12 * drawn).all() and (off <= 1.0001e-3 * drawn * 1.01 + 2 * reach / 500).all()


NETWORK = TrainingSpec.model_validate({
    "loss": "cross_entropy", "network": {"hidden": 1}, "radius": {"rule": "fixed", "value": 0.0},
})


def lit_above(place: float, steep: float) -> np.ndarray:
    """Parameters (1, 8) of a network whose one unit is lit where the first reading is above a place."""
    return np.array([[1.0, 0.0, 0.0, -place, steep, -steep, 0.0, 0.0]])


@pytest.fixture
def alone(make_site: Any, make_table: Any, policy: Any) -> Any:
    """Training rows of which one is far from the others, and what a site tells on sums of a network at a threshold."""
    head, *rows = make_table(100)
    held = [[min(row[0], 75.0), *row[1:]] for row in rows]
    allowed = policy.model_copy(update={"own_scores": True, "methods": ("fedavg", "level-bundle")})
    for number in range(10):  # the first that is not held out
        far = [*held[:number], [99.0, *held[number][1:]], *held[number + 1 :]]
        site = make_site([head, *far], policy=allowed, folder=f"site-{number}")
        train = Vault(site.source, site.asset_type).current().train
        if train.features[:, 0].max() > 0.9:
            break
    asked = 0

    def told(place: float, steep: float) -> float:
        nonlocal asked
        asked += 1
        answer = site.ask(
            "evaluate", spec=NETWORK, method="fedavg", reveal="sums", run_id=f"{asked // 12 + 1:032x}",
            arrays={"weights": lit_above(place, steep)},
        )
        assert isinstance(answer, SiteUpdate)
        return float(answer.arrays["risk"][0])

    return train, told


def test_a_threshold_that_comes_nearer_tells_no_further_digit_of_the_row_above_it(alone: Any) -> None:
    """Losses of one row, ever smaller and told to four digits, were four digits more of its reading each time."""
    train, told = alone
    first, second = np.sort(train.features[:, 0])[:-3:-1]
    wrong = -1e3 if train.classes[train.features[:, 0].argmax()] == 0 else 1e3  # of the class that the row is not
    rest, step = (len(train) - 1) / len(train) * np.log(2), 2e3 / (500 * len(train))
    found = []
    for gap in float(first - second) * 10.0 ** np.array([-1.0, -3.0, -5.0, -7.0]):
        exact = rest + np.log1p(np.exp(2e3 * gap)) / len(train)
        above = told(float(first) - gap, wrong) - exact
        assert 0 <= above <= 2 * step + 1e-3 * exact
        found.append(above / step * 2e-3)
    assert max(found) > 1e-4, "in shares of the reading's range; it was 1e-10 here"


def test_halving_at_the_edge_of_a_step_finds_no_further_digit(alone: Any) -> None:
    """Without what the secret draws, the place where what is told goes over to the next step was the reading."""
    train, told = alone
    first = float(train.features[:, 0].max())
    steep = -50.0 if train.classes[train.features[:, 0].argmax()] == 0 else 50.0
    edges = []
    for begin in (0.14, 0.13, 0.12, 0.11, 0.10):
        low, high = first - begin, first - begin + 0.04
        middle = told((low + high) / 2, steep)
        for _ in range(14):
            place = (low + high) / 2
            low, high = (place, high) if told(place, steep) >= middle else (low, place)
        edges.append((first - low) / 2e-3)
    # Where it goes over, in steps from the reading: whole steps from one another, if all models had the same ones.
    apart = np.array(edges) - edges[0]
    assert np.abs(apart - np.rint(apart)).max() > 0.05, edges


@pytest.mark.parametrize("method", ["level-bundle", "fdr-admm"])
def test_an_evaluation_of_a_model_that_its_method_does_not_train_is_refused(make_site: Any, method: str) -> None:
    """A policy that lists no method of networks answers nothing about them."""
    asked = {"spec": NETWORK, "method": method, "arrays": {"weights": lit_above(0.5, 1.0)}}
    assert make_site().refusal_code("evaluate", **asked) == "bad_task"


@pytest.mark.parametrize("size", [0.0, 1e-9, 1e-4, 1e-2, 1.0])
def test_no_risk_is_told_above_what_any_rows_have(make_site: Any, policy: Any, size: float) -> None:
    """A coordinator takes such a risk for a lie: at weights of nearly 0 the next four digits were above it."""
    site = make_site(policy=policy.model_copy(update={"own_scores": True}))
    weights = size * np.array([[1.0, 1.0, 1.0, 0.0]])
    spec = TrainingSpec.model_validate({"radius": {"rule": "fixed", "value": 0.1}})
    answer = site.ask("evaluate", spec=spec, arrays={"weights": weights}, reveal="sums", run_id="2" * 32)
    assert isinstance(answer, SiteUpdate)
    assert doubt("evaluate", spec, {"weights": weights}, answer.arrays, 3) == ""
    assert answer.arrays["risk"][0] >= 1.0 - 1e-12 if size < 1e-3 else answer.arrays["risk"][0] > 0
