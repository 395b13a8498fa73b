"""What a training by local steps tells of its rounds, and which it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from models.basics import ProblemError
from models.losses.catalogue import get_loss
from models.losses.regression import Squared
from models.methods.catalogue import METHODS
from models.methods.local_sgd.objectives.linear import LinearObjective
from models.methods.local_sgd.server import LocalServer
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


def test_steps_are_averaged_in_the_weights_of_the_sites() -> None:
    """One gradient step of each, from zero."""
    shares = {"s0": 0.7, "s1": 0.1, "s2": 0.2}
    run = train_local(SQUARES, SITES, method="fedsgd", parameters={"step_size": 0.1}, weights=shares, rounds=1)
    slopes = [SQUARES.loss_and_gradient(np.zeros(2), *rows)[1] for rows in SITES.values()]
    np.testing.assert_allclose(run.weights, -0.1 * np.array(list(shares.values())) @ slopes, rtol=1e-12)
    assert run.weights_of_sites == pytest.approx(list(shares.values()))


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


@pytest.mark.parametrize("method", [name for name, each in METHODS.items() if isinstance(each.server, LocalServer)])
def test_leaving_out_gradients_that_nothing_reads_changes_no_digit(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class Counted(LinearObjective):
        def loss_and_gradient(self, *args, **more):
            asked.append("gradient")
            return super().loss_and_gradient(*args, **more)

        def loss(self, weights, features, labels):
            return LinearObjective.loss_and_gradient(SQUARES, weights, features, labels)[0]

    def run():
        asked.clear()
        parameters = {"batch": 0.5, "step_size": 0.01} if method != "feddro" else {"over_rows": 0.0, "step_size": 0.01}
        objective = Counted(Squared(), fit_intercept=False)
        return train_local(objective, SITES, method=method, parameters=parameters, rounds=3), len(asked)

    lean, gradients = run()
    server = METHODS[method].server
    assert isinstance(server, LocalServer)
    monkeypatch.setattr(type(server.rule), "reads_slopes", True)
    whole, more = run()
    np.testing.assert_array_equal(lean.weights, whole.weights)
    np.testing.assert_array_equal(lean.site_losses, whole.site_losses)
    kept = method.startswith("scaff") or method == "feddro"  # the one reads them, the other's site tells them always
    assert gradients == more if kept else gradients < more
