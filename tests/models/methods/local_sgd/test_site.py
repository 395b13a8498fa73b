"""Batches of local steps: every row once an epoch, and never fewer rows than the site wants."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.losses.classification import Logistic
from models.methods.local_sgd.site import LocalStepsSite
from models.problem import RobustSpec, SiteProblem


def problem(count: int) -> SiteProblem:
    """Rows that can be told apart by their one feature."""
    labels = np.where(np.arange(count) % 2 == 0, 1.0, -1.0)
    return SiteProblem(np.arange(count, dtype=float)[:, None], labels, RobustSpec(0.0, 1.0, loss=Logistic()))


@settings(max_examples=100, derandomize=True)
@given(
    count=st.integers(1, 70), share=st.floats(0.001, 1.0), least=st.integers(1, 30), epochs=st.integers(1, 3),
    seed=st.integers(0, 2**40),
)
def test_an_epoch_meets_every_row_once_in_batches_that_are_large_enough(
    count: int, share: float, least: int, epochs: int, seed: int
) -> None:
    parameters = {"batch": share, "epochs": float(epochs), "least_rows": float(least)}
    random = np.random.default_rng(seed)
    site = problem(count)
    batches = [site.features[rows, 0] for rows in LocalStepsSite()._batches(site, parameters, random)]
    assert len(batches) % epochs == 0
    per_epoch = len(batches) // epochs
    for epoch in range(epochs):
        met = np.concatenate(batches[epoch * per_epoch : (epoch + 1) * per_epoch])
        assert sorted(met) == list(range(count))
    assert min(len(batch) for batch in batches) >= min(least, count)


@pytest.mark.parametrize(("least", "told"), [(1.0, True), (20.0, False)])
def test_one_step_tells_of_a_single_row_unless_the_site_forbids_it(least: float, told: bool) -> None:
    site, dimension = problem(40), 2
    message = {
        "point": np.zeros(dimension), "correction": np.zeros(dimension), "step_size": np.array(1.0),
        "draw": np.array(7.0), "snapshot_step": np.array(1.0),
    }
    answer = LocalStepsSite().answer(site, message, {"batch": 1e-9, "local_steps": 1.0, "least_rows": least})
    moved = answer["local_point"]
    single = abs(moved[1]) == 0.5 and float(moved[0] / moved[1]).is_integer()
    assert single == told


@pytest.mark.parametrize(("share", "steps"), [(1.0, 1.0), (1.0, 3.0), (0.25, 1.0), (0.25, 3.0)])
def test_the_account_of_steps_is_of_their_sum_and_of_batches_that_of_their_rows(share: float, steps: float) -> None:
    """So that differences are those which someone makes who knows how many steps, and how many rows, there are.

    Of several steps the mean is there, too: between it and gradients are differences that anybody can make.
    """
    site, size = problem(40), 0.01
    message = {
        "point": np.array([0.02, -0.1]), "correction": np.zeros(2), "step_size": np.array(size),
        "draw": np.array(7.0), "snapshot_step": np.array(2.0),
    }
    found = LocalStepsSite().accounted(site, message, {"batch": share, "local_steps": steps})
    rows = np.column_stack([site.features, np.ones(40)])
    ends = [(found.arrays["local_point"], 1.0)] + [(found.arrays["snapshot"], 1.0)] * (steps > 2.0)
    if steps > 1.0:
        ends += [(found.arrays["local_point"], steps), (found.arrays["snapshot"], 2.0)]
    assert len(found.account.rows) == 1 + len(ends)
    assert np.allclose(found.account.rows[0] @ rows, found.arrays["slope"])
    for account, (end, of_steps) in zip(found.account.rows[1:], ends, strict=True):
        assert np.allclose(account @ rows, share * (message["point"] - end) / size / of_steps)
