"""What the methods of local steps draw, how long their steps are, and what a mean over absent sites is."""

from __future__ import annotations

import numpy as np
import pytest

from models.basics import ProblemError
from models.methods.catalogue import get_method
from models.methods.local_sgd.rule import check_clients, draw_number, server_draws, step_messages, step_size
from models.methods.local_sgd.sampled_sites import SampledRound, mean_answer
from models.problem import ServerProblem, SiteTerms


def _problem(name: str, n_sites: int = 4, **parameters: float) -> ServerProblem:
    shares = np.arange(1.0, n_sites + 1) / np.arange(1.0, n_sites + 1).sum()
    sites = tuple(SiteTerms(f"s{g}", float(share), 0.0, 1.0) for g, share in enumerate(shares))
    return ServerProblem(2, sites, "l2", fit_intercept=False,
                         parameters={**get_method(name).parameters, **parameters})


def test_steps_fall_by_the_power_of_the_round_from_the_first_on() -> None:
    problem = _problem("fedavg", step_size=0.6, step_power=0.5)
    assert [step_size(problem, finished) for finished in (0, 1, 3)] == pytest.approx([0.6, 0.6 / np.sqrt(2), 0.3])
    assert step_size(_problem("fedavg", step_size=0.6), 50) == 0.6


def test_every_seed_round_and_site_has_a_draw_of_its_own_that_a_float_holds() -> None:
    numbers = [draw_number(seed, turn, g) for seed in (0, 1) for turn in range(12) for g in range(12)]
    assert len(set(numbers)) == len(numbers)
    assert all(0 <= number < 2**53 and int(float(number)) == number for number in numbers)
    assert draw_number(1.0, 3.0, 2) == draw_number(1, 3, 2)
    firsts = {server_draws(seed, turn).integers(2**53) for seed in (0, 1) for turn in range(20)}
    assert len(firsts) == 40 and server_draws(1, 3).integers(9**9) == server_draws(1.0, 3.0).integers(9**9)


def test_each_site_gets_the_step_and_the_draw_that_are_its_own() -> None:
    problem, sizes = _problem("fedavg", seed=5.0), np.array([0.1, 0.0, 0.3, 0.2])
    sent = step_messages(problem, np.ones(2), 7.0, sizes)
    assert [float(sent[site.site_id]["step_size"]) for site in problem.sites] == sizes.tolist()
    assert [float(sent[f"s{g}"]["draw"]) for g in range(4)] == [float(draw_number(5, 7, g)) for g in range(4)]
    assert not any("own_control" in each or each["correction"].any() for each in sent.values())
    held = step_messages(problem, np.ones(2), 7.0, sizes, control=np.array([1.0, -2.0]), snapshot_step=3)
    assert all(float(each["own_control"]) == 1.0 and each["correction"][1] == -2.0 for each in held.values())
    assert {float(each["snapshot_step"]) for each in held.values()} == {3.0}


def test_as_many_clients_as_there_are_sites_and_no_more() -> None:
    assert (check_clients(4, 4), check_clients(0, 4)) == (4, 0)
    with pytest.raises(ProblemError, match="clients must be at most the number of sites, 4, got 5"):
        check_clients(5, 4)


def test_draws_count_without_bias_by_the_mixture_and_by_the_sites() -> None:
    problem, mixture = _problem("drfa", clients=2.0), np.array([0.7, 0.2, 0.1, 0.0])
    drawn = [SampledRound.draw(problem, mixture, turn, 3) for turn in range(600)]
    for each in drawn:
        assert each.stepping.sum() == pytest.approx(1.0) and each.stepping[3] == 0.0
        assert sorted(each.telling) == [0.0, 0.0, 2.0, 2.0]
    assert np.mean([each.stepping for each in drawn], axis=0) == pytest.approx(mixture, abs=0.05)
    assert np.mean([each.telling for each in drawn], axis=0) == pytest.approx(1.0, abs=0.1)
    assert {each.snapshot_step for each in drawn} == {1, 2, 3}
    assert max(each.stepping.max() for each in drawn) == 1.0  # the same site twice
    again = SampledRound.draw(problem, mixture, 17, 3)
    np.testing.assert_array_equal(again.stepping, drawn[17].stepping)
    whole = SampledRound.draw(_problem("drfa"), mixture, 0, 3)
    np.testing.assert_array_equal(whole.stepping, mixture)
    np.testing.assert_array_equal(whole.telling, 1.0)


def test_a_mean_over_the_sites_that_are_there_divides_by_their_shares() -> None:
    problem, old = _problem("drfa"), np.array([9.0, 9.0])
    answers = {"s0": {"x": np.array([1.0, 2.0])}, "s1": {"x": np.array([4.0, 8.0])}, "s3": {"x": np.full(2, 100.0)}}
    shares = np.array([0.2, 0.4, 0.4, 0.0])
    np.testing.assert_allclose(mean_answer(problem, answers, "x", shares, old), [3.0, 6.0])
    np.testing.assert_array_equal(mean_answer(problem, {}, "x", shares, old), old)
    only = {"s3": answers["s3"]}
    np.testing.assert_array_equal(mean_answer(problem, only, "x", shares, old), old)
