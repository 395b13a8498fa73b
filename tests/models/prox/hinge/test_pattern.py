"""Patterns that are wrong are seen to be wrong and mended; the one that a nearly finished run shows is right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.basics import FloatArray
from models.geometry.norms import dual_norm
from models.prox.hinge import robust_prox
from models.prox.hinge.active_set import settle, solve_pattern
from models.prox.hinge.breakpoints import best_multiplier
from models.prox.hinge.certify import certified
from models.prox.hinge.interior_point import start_interior
from models.prox.hinge.pattern import KEEP, ZERO, Pattern, Trial, pattern_at, pattern_of, revise
from models.prox.hinge.statement import Statement
from tests.models.prox.hinge.statements import stated

NORMS = ("l1", "l2", "linf")
CENTRE = np.linspace(-1.0, 2.0, 6)
SHARES = {
    ("l1", 0.3): 0.5, ("l2", 0.3): 0.5, ("linf", 0.3): 0.5,
    ("l1", 1.0): 0.85, ("l2", 1.0): 0.85, ("linf", 1.0): 0.6,
    ("l1", np.inf): 0.65, ("l2", np.inf): 0.9, ("linf", np.inf): 0.6,
}
"""Of drawn patterns that settle, at least; the interior point answers where one does not."""


def _optimum(problem: Statement, weights: FloatArray) -> Pattern:
    size = dual_norm(weights[: problem.n_features], problem.norm)
    return pattern_at(
        problem, weights, best_multiplier(problem.rows @ weights, problem.price, problem.flip, size), 1e-7
    )


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("flip_cost", [0.3, 1.0, np.inf])
def test_what_settles_is_the_optimum_and_many_patterns_of_points_near_by_settle(make_site, norm, flip_cost):
    """The pattern is that of the optimum for a centre near by, one sign of the face changed now and then."""
    random, settled, tried = np.random.default_rng(0), 0, 0
    for seed in range(8):
        site = make_site(80, norm=norm, seed=seed, radius=0.03, flip_cost=flip_cost)
        problem = stated(site, CENTRE, 1.0)
        for size in (0.003, 0.01, 0.03):
            near = robust_prox(site, CENTRE + size * random.normal(size=6), 1.0).point
            start = _optimum(problem, near)
            signs = start.signs.copy()
            if norm != "l2" and start.tied and seed % 2:
                signs[random.integers(5)] = random.choice([-1.0, 0.0, 1.0])
            trial, _ = settle(problem, replace(start, signs=signs), 25)
            tried += 1
            if trial is not None:
                settled += 1
                proof = certified(problem, trial)
                assert proof.gap <= 1e-10 * proof.objective
    assert settled >= SHARES[norm, flip_cost] * tried, (settled, tried)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    ("radius", "flip_cost", "seeds"),
    [(0.01, 1.0, range(5)), (0.05, 0.3, range(5)), (0.01, np.inf, range(5)), (1.0, np.inf, (2, 4))],
)
def test_a_nearly_finished_run_shows_the_pattern(make_site, norm, radius, flip_cost, seeds):
    """Also where the multiplier is above the norm of the weights, and where the radius holds the weights at 0."""
    for seed in seeds:
        site = make_site(80, norm=norm, seed=seed, radius=radius, flip_cost=flip_cost)
        problem = stated(site, CENTRE, 0.1)
        run = start_interior(problem, CENTRE, dual_norm(CENTRE[:5], norm))
        while run.gap > 1e-9 * abs(run.objective()) and run.advance():
            pass
        trial, _ = settle(problem, pattern_of(run), 3)
        assert trial is not None
        proof = certified(problem, trial)
        assert proof.gap <= 1e-10 * abs(proof.objective)


@pytest.mark.parametrize("norm", NORMS)
def test_a_dual_weight_below_zero_and_a_piece_above_the_assumed_ones_contradict(make_site, norm):
    """By a millionth, which is far above rounding."""
    site = make_site(80, norm=norm, radius=0.05)
    problem = stated(site, CENTRE, 0.1)
    right = _optimum(problem, robust_prox(site, CENTRE, 0.1).point)
    trial = solve_pattern(problem, right)
    assert trial is not None and revise(problem, right, trial)[1]
    row = trial.ties[right.support[trial.ties] == ZERO + KEEP][0]
    for weight in (-1e-6, 1.0 + 1e-6):
        shares = trial.keep.copy()
        shares[row] = weight
        assert not revise(problem, right, replace(trial, keep=shares))[1]
    flips = trial.flip.copy()
    flips[row] = -1e-6
    assert not revise(problem, right, replace(trial, flip=flips))[1]
    # A row that is only kept, a millionth under its kink.
    kept = np.flatnonzero(right.support == KEEP)[0]
    alone = replace(problem, rows=problem.rows[[kept]].copy())
    weights = trial.weights.copy()
    weights[-1] += (1.0 + 1e-6 - float(alone.rows[0] @ weights)) / alone.rows[0, -1]
    moved = Trial(weights, 1e3, np.ones(1), np.zeros(1), trial.norm_dual, np.zeros(0, np.intp))
    revised, agrees = revise(alone, replace(right, support=right.support[[kept]]), moved)
    assert revised.support[0] == KEEP + ZERO and not agrees


def test_weights_of_zero_are_held_while_their_dual_is_within_the_price(make_site):
    """In the transport norm, whose dual is that of the weights."""
    problem = stated(make_site(10, norm="l1", radius=0.1, flip_cost=np.inf), CENTRE, 0.1)
    zero = Pattern(np.full(10, KEEP, dtype=np.uint8), True, np.zeros(5), np.zeros(6), problem.price)
    for size, held in ((0.19, True), (0.21, False)):
        dual = problem.price * size * np.array([1.0, -1.0, 1.0, -1.0, 1.0])
        trial = Trial(np.zeros(6), 0.0, np.ones(10), np.zeros(0), dual, np.zeros(0, np.intp))
        revised, _ = revise(problem, zero, trial)
        np.testing.assert_array_equal(revised.signs, np.zeros(5) if held else -np.sign(dual))
