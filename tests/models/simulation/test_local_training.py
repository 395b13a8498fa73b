"""What a training by local steps tells of its rounds, and which it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from models.basics import ProblemError
from models.losses.catalogue import get_loss
from models.losses.regression import Squared
from models.methods.local_sgd.objectives.linear import LinearObjective
from models.simulation.local_training import train_local

RANDOM = np.random.default_rng(0)
SITES = {f"s{g}": (RANDOM.normal(size=(8, 2)), (1.0 + 2 * g) * RANDOM.normal(size=8)) for g in range(3)}
SQUARES = LinearObjective(Squared(), fit_intercept=False)


def test_losses_are_told_once_a_round_and_the_last_mixture_is_the_method_s_own() -> None:
    run = train_local(SQUARES, SITES, method="scaff-pd", parameters={"alpha": 0.5, "dual_step": 0.1}, rounds=4)
    assert run.site_losses.shape == (4, 3) and run.exchanges == 8
    start = [float(np.mean(np.square(y))) for _, y in SITES.values()]
    np.testing.assert_allclose(run.site_losses[0], start)  # at the zero weights that it began with
    assert run.weights_of_sites.sum() == pytest.approx(1.0)
    assert run.weights_of_sites[2] > run.weights_of_sites[0] + 0.1  # the noisiest site is pressed down
    plain = train_local(SQUARES, SITES, method="fedavg", rounds=4)
    assert plain.exchanges == 4 and plain.weights_of_sites == pytest.approx(np.full(3, 1.0 / 3.0))


def test_what_has_corners_or_no_rows_is_refused_in_one_line() -> None:
    hinge = LinearObjective(get_loss("hinge"), fit_intercept=False)
    signs = {name: (x, np.sign(y)) for name, (x, y) in SITES.items()}
    with pytest.raises(ProblemError, match="method scaff-pd needs a smooth objective"):
        train_local(hinge, signs, method="scaff-pd")
    for empty in ((np.zeros((0, 2)), np.zeros(0)), (np.zeros((3, 2)), np.zeros(2))):
        with pytest.raises(ProblemError, match=r"site s1: features must be \(N, P\) and labels \(N,\), N at least 1"):
            train_local(SQUARES, {**SITES, "s1": empty})
    with pytest.raises(ProblemError, match="rounds must be at least 1, got 0"):
        train_local(SQUARES, SITES, rounds=0)
