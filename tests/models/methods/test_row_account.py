"""The account of an answer is true: its coefficients over the rows give the answer's vectors again."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from models.geometry.supports import BoxSupport
from models.losses.catalogue import get_loss
from models.methods.catalogue import METHODS, get_method
from models.methods.row_account import RowAccount, accounted_answer, joined
from models.one_vs_rest import accounted_heads, answer_heads
from models.problem import RobustSpec, SiteProblem

SCALARS = {
    "step_size": 0.0, "draw": 1.0, "snapshot_step": 1.0, "price": 0.7, "target": 0.2, "penalty": 0.05, "ridge": 0.01,
    "inner": 1.0, "share": 0.5,
}


def problem(loss: str, n_rows: int, seed: int = 0, **changes: Any) -> SiteProblem:
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n_rows, 4))
    score = x @ rng.normal(size=4) + 0.3 * rng.normal(size=n_rows)
    of_loss = get_loss(loss)
    labels = np.where(score > np.median(score), 1.0, -1.0) if of_loss.task == "classification" else score
    return SiteProblem(x, labels, RobustSpec(**({"radius": 0.05, "label_flip_cost": 0.8, "loss": of_loss} | changes)))


def message(seed: int, dimension: int = 5, **changes: float) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    vectors = {name: rng.normal(size=dimension) for name in ("point", "centre")} | {"correction": np.zeros(dimension)}
    return vectors | {name: np.array(value) for name, value in (SCALARS | {"stiffness": 0.0} | changes).items()}


def questions(seed: int, number: int, dimension: int = 5) -> dict[str, np.ndarray]:
    """A first message of the bundle on sums."""
    rng = np.random.default_rng(seed)
    return {
        "points": rng.normal(size=(number, dimension)), "centre": rng.normal(size=(number, dimension)),
        "penalty": np.full(number, SCALARS["penalty"]), "counted": np.zeros((number, 0)),
        "of_norm": np.zeros((number, dimension)), "sides": np.zeros((number, dimension - 1)),
    }


def vector_of(rows: np.ndarray, site: SiteProblem) -> np.ndarray:
    return np.append(rows @ site.features, rows.sum())


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"cohort-bundle"}))
@pytest.mark.parametrize(("loss", "n_rows"), [("hinge", 60), ("logistic", 40), ("huber", 40), ("hinge", 900)])
def test_the_coefficients_give_the_slopes_again(name: str, loss: str, n_rows: int) -> None:
    method, site = get_method(name), problem(loss, n_rows)
    asked = message(1)
    found = accounted_answer(method.site, site, asked, method.parameters)
    plain = method.site.answer(site, asked, method.parameters)
    assert {key: value.tobytes() for key, value in found.arrays.items()} == {k: v.tobytes() for k, v in plain.items()}
    if not found.account.rows:
        assert not found.account.whole
        return
    assert all(rows.shape == (n_rows,) for rows in found.account.rows)
    np.testing.assert_allclose(vector_of(found.account.rows[0], site), plain["slope"], atol=1e-12)
    if len(found.account.rows) > 1:
        own = vector_of(found.account.rows[1], site)
        np.testing.assert_allclose(own, plain["minorant_slope"], atol=1e-9)
        if name != "drfl-admm":  # without a step its minorant is the cut at the point
            assert np.abs(own - plain["slope"]).max() > 1e-6, "the second vector is one of its own"


def test_every_question_of_a_message_is_accounted_for() -> None:
    method, site, asked = get_method("cohort-bundle"), problem("hinge", 60), questions(5, 3)
    found = accounted_answer(method.site, site, asked, method.parameters)
    plain = method.site.answer(site, asked, method.parameters)
    assert {key: value.tobytes() for key, value in found.arrays.items()} == {k: v.tobytes() for k, v in plain.items()}
    slopes = np.stack([plain["slope"], plain["minorant_slope"]], axis=1).reshape(6, 5)
    assert found.account.whole and len(found.account.rows) == 6
    for rows, slope in zip(found.account.rows, slopes, strict=True):
        np.testing.assert_allclose(vector_of(rows, site), slope, atol=1e-9)


@pytest.mark.parametrize("loss", ["hinge", "pinball"])
def test_what_moves_in_a_box_add_is_said_to_be_missing(loss: str) -> None:
    site = problem(loss, 50, radius=0.2, label_flip_cost=20.0, support=BoxSupport(np.zeros(4), np.ones(4), -3.0, 3.0))
    found = accounted_answer(METHODS["level-bundle"].site, site, message(2), {})
    still = accounted_answer(METHODS["level-bundle"].site, problem(loss, 50, radius=0.0), message(2), {})
    assert len(found.account.rows) == 2
    assert not found.account.whole
    assert still.account.whole


@pytest.mark.parametrize("changes", [{}, {"batch": 0.3}, {"proximal": 1.0, "ridge": 0.1, "batch": 0.5}, {"own": 1.0}])
def test_where_local_steps_end_is_what_their_account_says(changes: dict[str, float]) -> None:
    site, method = problem("logistic", 40), get_method("fedavg")
    parameters = {**method.parameters, **changes}
    asked = message(3, step_size=0.1, snapshot_step=2.0, own_control=changes.get("own", 0.0))
    found = accounted_answer(method.site, site, asked, parameters)
    still = accounted_answer(method.site, site, message(3), parameters)
    assert (len(still.account.rows), still.account.whole) == (1, True)
    assert (len(found.account.rows), found.account.whole) == (5, True)
    steps = 5 * math.ceil(1.0 / parameters["batch"])
    ridge, pull = parameters.get("ridge", 0.0), 0.1 * (parameters.get("ridge", 0.0) + parameters.get("proximal", 0.0))
    own = ridge * asked["point"] if changes.get("own") else 0.0
    for rows, name, count in ((found.account.rows[1], "local_point", steps), (found.account.rows[2], "snapshot", 2)):
        # What the ridge alone does from the point, which nobody needs the rows for.
        away = np.zeros(5)
        for _ in range(count):
            away = (1.0 - pull) * away - 0.1 * (ridge * asked["point"] - own)
        told = parameters["batch"] * (away - (found.arrays[name] - asked["point"])) / 0.1
        np.testing.assert_allclose(vector_of(rows, site), told, atol=1e-10)
    for rows, mean, count in zip(found.account.rows[1:3], found.account.rows[3:], (steps, 2), strict=True):
        np.testing.assert_allclose(count * mean, rows)


def test_rows_that_are_mixed_before_a_step_are_said_to_be_unaccounted() -> None:
    site, method = problem("logistic", 40), get_method("drflm")
    assert accounted_answer(method.site, site, message(3, step_size=0.1), method.parameters).account.whole is False


def test_where_a_prox_step_ends_is_what_its_minorant_says() -> None:
    for loss in ("hinge", "logistic"):
        site, asked = problem(loss, 60), message(6, ridge=0.0, penalty=0.5)
        found = accounted_answer(METHODS["fdr-admm"].site, site, asked, {})
        local, whole = found.arrays["local_point"], vector_of(found.account.rows[1], site)
        norm = local[:4] / np.linalg.norm(local[:4]) * float(found.arrays["minorant_norm_weight"])
        assert found.account.whole
        np.testing.assert_allclose(0.5 * (asked["centre"] - local), whole + np.append(norm, 0.0), atol=1e-7)


def test_a_step_on_some_of_the_rows_is_accounted_for_by_them() -> None:
    site, asked = problem("hinge", 60), message(6, stiffness=2.0, target=-5.0)
    found = accounted_answer(METHODS["drfl-admm"].site, site, asked, {**METHODS["drfl-admm"].parameters, "batch": 0.5})
    assert len(found.account.rows) == 3 and found.account.whole
    assert 0 < np.count_nonzero(found.account.rows[2]) <= 30 < np.count_nonzero(found.account.rows[1])


def test_heads_are_accounted_for_one_after_the_other() -> None:
    sites = [problem("hinge", 50), problem("hinge", 50, label_flip_cost=2.0)]
    one = message(4)
    both = {name: np.stack([array, array * 0.5 if array.ndim else array]) for name, array in one.items()}
    half = METHODS["level-bundle"].site
    found = accounted_heads(half, sites, both, {})
    assert len(found.account.rows) == 4
    for rows, slope in zip(found.account.rows[::2], found.arrays["slope"], strict=True):
        np.testing.assert_allclose(vector_of(rows, sites[0]), slope, atol=1e-12)
    np.testing.assert_array_equal(found.arrays["slope"], answer_heads(half, sites, both, {})["slope"])


def test_heads_are_accounted_for_together_where_each_of_them_is() -> None:
    """One of which something is left out leaves it out of the whole answer."""
    first, second = RowAccount((np.ones(3),)), RowAccount((np.zeros(3), np.arange(3.0)))
    for parts in ((first, second), (first, second.partial()), (first.partial(), second), ()):
        found = joined(parts)
        assert found.whole == all(part.whole for part in parts)
        assert [rows.tolist() for rows in found.rows] == [rows.tolist() for part in parts for rows in part.rows]


def test_a_vector_whose_rows_nobody_knows_leaves_the_account_open_unless_it_is_zero() -> None:
    before = RowAccount((np.ones(3),))
    unknown, nothing = (before.with_vector(None, slope, 3) for slope in (np.array([0.0, 1e-300]), np.zeros(2)))
    assert not unknown.whole and len(unknown.rows) == 1
    assert nothing.whole and nothing.rows[1].tolist() == [0.0, 0.0, 0.0]
    assert not before.with_vector(np.ones(3), np.ones(2), 3, whole=False).whole
    assert not before.partial().with_vector(np.ones(3), np.ones(2), 3).whole
