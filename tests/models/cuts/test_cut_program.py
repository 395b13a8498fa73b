"""Programs on cut models, whole, on a working set, in the span of the slopes: one solution, that of CVXPY."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from models.basics import FloatArray, TransportNorm
from models.cuts import cut_program, distinct, stated_program, working_set
from models.cuts.cut_model import CutModel, ModelPoint
from models.cuts.cut_program import minimise, project
from models.cuts.lower_bound import lower_bound
from models.geometry.norms import DUAL_NORM
from models.site_ambiguity.ball import MixtureBall, MixtureNorm
from models.solvers import active_set, conic_interior_point
from models.solvers.cone_program import ConeProgram
from models.solvers.conic_interior_point import solve_cone_program
from models.solvers.solution import Solution, SolverStatus

ORDERS = {"l1": 1, "l2": 2, "linf": "inf"}
MODELS = {
    "seed": st.integers(0, 2**32 - 1), "sites": st.integers(1, 5), "p": st.integers(1, 8),
    "intercept": st.booleans(), "norm": st.sampled_from(["l1", "l2", "linf"]), "swings": st.booleans(),
    "ball": st.sampled_from([None, "l1", "l2", "linf"]),
}


def drawn(
    seed: int, sites: int, p: int, intercept: bool, norm: TransportNorm, swings: bool, ball: MixtureNorm | None
) -> tuple[CutModel, FloatArray]:
    """Cuts of drawn hinge-like risks, some with norm weights, and a centre; the floors keep the minimum bounded."""
    random = np.random.default_rng(seed)
    count = random.integers(1, 4) * np.ones(sites, int) + random.integers(0, 9, sites)
    site = random.permutation(np.repeat(np.arange(sites), count))
    m, d = site.size, p + int(intercept)
    slope = random.normal(size=(m, d))
    if intercept:  # both ways in each site's cuts, so that no level set runs away
        slope[:, -1] = np.where(np.arange(m) % 2 == 0, 1.0, -1.0) * random.uniform(0.5, 1.0, m)
    weights = random.uniform(0.5, 1.0, sites)
    mixture = MixtureBall() if ball is None else MixtureBall(ball, float(random.uniform(0.05, 0.4)))
    model = CutModel(
        weights / weights.sum(), np.full(sites, 0.1), site, random.uniform(0.1, 1.0, m), slope,
        np.where(random.random(m) < 0.5, random.uniform(0, 0.1, m), 0.0), norm, p, mixture,
        swing=random.uniform(0, 0.3, (m, p)) * (random.random((m, 1)) < 0.5) if swings else None,
    )
    return model, random.normal(size=d)


@contextmanager
def way(name: str) -> Iterator[None]:
    """All cuts by active sets, dense, with the heights eliminated, a working set, the span: whatever the sizes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stated_program, "_SMALL_PROGRAM", 10**9 if name in ("active sets", "dense") else 0)
        if name == "dense":
            patch.setattr(active_set, "daqp", None)
        patch.setattr(cut_program, "_SPANNED", 10**9 if name == "span" else 0.0)
        for constant, value in (("FEW", 0), ("_NEWEST", 0), ("_HIGHEST", 1)):
            if name == "working set":
                patch.setattr(working_set, constant, value)
                patch.setattr(distinct, "FEW", 0)
        yield


def oracle(model: CutModel, centre: FloatArray, level: float | None) -> float:
    """Least value of the model, or squared distance to its level set, by CVXPY."""
    w, sites = cp.Variable(centre.shape[0]), model.site_weights.shape[0]
    heights = cp.Variable(sites)
    features = w[: model.n_features]
    length = cp.norm(features, ORDERS[DUAL_NORM[model.transport_norm]])
    rows = [heights >= length * model.floor]
    for j, g in enumerate(model.site):
        cut = model.offset[j] + model.slope[j] @ w + model.norm_weight[j] * length
        rows.append(heights[g] >= cut + model.swings[j] @ cp.abs(features))
    value = model.site_weights @ heights
    if model.mixture.radius > 0:  # the adversary's dual: any t, the ball's dual norm, and the simplex by raised heights
        t, raised = cp.Variable(), cp.Variable(sites)
        rows.append(raised >= heights)
        dual = ORDERS[DUAL_NORM[model.mixture.norm]]
        value = model.site_weights @ raised + model.mixture.radius * cp.norm(raised - t, dual)
    if level is None:
        problem = cp.Problem(cp.Minimize(value), rows)
    else:
        problem = cp.Problem(cp.Minimize(cp.sum_squares(w - centre)), [*rows, value <= level])
    return float(problem.solve(solver=cp.CLARABEL))


@settings(max_examples=24)
@given(**MODELS)
def test_every_way_finds_the_minimum(**kind: object) -> None:
    model, centre = drawn(**kind)  # type: ignore[arg-type]
    wanted = oracle(model, centre, None)
    for name in ("active sets", "dense", "eliminated", "working set", "span"):
        with way(name):
            found = minimise(model, centre)
        assert model.value(found.point) == pytest.approx(wanted, rel=1e-6, abs=1e-6), name
        assert (found.multipliers >= 0).all() and found.multipliers.shape == model.site.shape
        held = model.with_mixture(found.mixture)
        bound = lower_bound(held, found.multipliers, found.point)
        assert wanted - 1e-5 * (1 + wanted) <= bound <= wanted + 1e-6 * (1 + wanted), name


@settings(max_examples=24)
@given(**MODELS, share=st.sampled_from([0.05, 0.3, 0.8]))
def test_every_way_projects_alike(share: float, **kind: object) -> None:
    model, centre = drawn(**kind)  # type: ignore[arg-type]
    lowest = model.value(minimise(model, centre).point)
    height = model.value(centre)
    assume(height - lowest > 1e-3)
    level = lowest + share * (height - lowest)
    wanted = np.sqrt(oracle(model, centre, level))
    for name in ("active sets", "dense", "eliminated", "working set", "span"):
        with way(name):
            found = project(model, centre, level)
        assert np.linalg.norm(found.point - centre) == pytest.approx(wanted, rel=1e-4, abs=1e-5), name
        assert model.value(found.point) <= level + 1e-7 * (1 + height), name
        assert found.level_price > 0


@settings(max_examples=15)
@given(**MODELS, share=st.sampled_from([0.05, 0.3, 0.8]))
def test_the_way_to_a_level_changes_no_projection(share: float, **kind: object) -> None:
    """Begun on the chord to the minimiser, in units of what is still to go: nearest point and price are the same."""
    model, centre = drawn(**kind)  # type: ignore[arg-type]
    least = minimise(model, centre).point
    lowest, height = model.value(least), model.value(centre)
    assume(height - lowest > 1e-3)
    level = lowest + share * (height - lowest)
    wanted = np.sqrt(oracle(model, centre, level))
    for name in ("active sets", "dense", "eliminated", "working set", "span"):
        with way(name):
            found, plain = project(model, centre, level, towards=least), project(model, centre, level)
        assert np.linalg.norm(found.point - centre) == pytest.approx(wanted, rel=1e-4, abs=1e-5), name
        assert model.value(found.point) <= level + 1e-6 * (1 + height), name
        assert found.level_price == pytest.approx(plain.level_price, rel=1e-2, abs=1e-6), name


@settings(max_examples=15)
@given(**MODELS)
def test_a_bound_that_may_miss_something_misses_no_more(**kind: object) -> None:
    """Begun near the minimum and ended early, the bound is below the minimum, by little of what was allowed."""
    model, centre = drawn(**kind)  # type: ignore[arg-type]
    wanted = oracle(model, centre, None)
    within = 0.05 * (model.value(centre) - wanted)
    assume(within > 1e-4)
    for name in ("active sets", "dense", "eliminated", "working set", "span"):
        with way(name):
            found = minimise(model, centre, within=within)
        bound = lower_bound(model.with_mixture(found.mixture), found.multipliers, found.point, 0.01 * within)
        # A working set may miss all of it; a program over all cuts ends at a small share.
        allowed = within if name == "working set" else 0.1 * within
        assert wanted - allowed - 1e-5 <= bound <= wanted + 1e-6 * (1 + wanted), name


@pytest.mark.parametrize("seed", range(4))
def test_a_minimum_that_is_not_as_near_as_was_said_is_found(seed: int) -> None:
    """Told that a millionth of a millionth is to go where it is all of the height, the start is no start."""
    model, centre = drawn(seed, 3, 6, True, "l2", False, None)
    wanted = oracle(model, centre, None)
    assert model.value(centre) - wanted > 1e-2
    with way("eliminated"):
        found = minimise(model, centre, within=1e-12)
    bound = lower_bound(model, found.multipliers, found.point)
    assert wanted - 1e-6 <= bound <= wanted + 1e-6 * (1 + wanted)


def test_a_cut_that_was_left_out_counts_where_it_must() -> None:
    """The one cut of many that matters is neither new nor high at the centre: the minimum is still that of all."""
    random = np.random.default_rng(5)
    slope = np.vstack([[[-3.0, 0.0]], random.normal(size=(400, 2)) * [0.1, 1.0] + [1.0, 0.0]])
    model = CutModel(
        np.ones(1), np.array([0.01]), np.zeros(401, dtype=np.intp),
        np.concatenate([[-1.0], random.uniform(0.5, 1.0, 400)]), slope, np.zeros(401), "l2", 2,
    )
    centre = np.array([4.0, 0.0])
    assert model.heights(centre[None])[0, 0] == model.heights(centre[None])[0].min()
    sizes: list[int] = []
    with way("working set"), pytest.MonkeyPatch.context() as patch:
        solve = cut_program._solve

        def counted(few: CutModel, *rest: Any) -> ModelPoint:
            sizes.append(few.site.size)
            return solve(few, *rest)

        patch.setattr(cut_program, "_solve", counted)
        found = minimise(model, centre)
    assert found.multipliers[0] > 0.1 and max(sizes) < 200
    assert model.value(found.point) == pytest.approx(oracle(model, centre, None), abs=1e-7)


def test_what_a_hasty_program_leaves_out_it_tells() -> None:
    """With little asked for it may end early: its bound holds all the same, and what it missed is named."""
    model, centre = drawn(3, 3, 6, True, "l2", False, None)
    wanted = minimise(model, centre)
    least = model.value(wanted.point)
    with way("working set"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(cut_program, "_HASTY", 1)
        found = minimise(model, centre, within=1e-9)
    assert found.missed is not None and found.missed.any() and not (found.missed & (found.multipliers > 0)).any()
    assert lower_bound(model, found.multipliers, centre) <= least * (1 + 1e-12)


@settings(max_examples=40, derandomize=True)
@given(**MODELS)
def test_slopes_of_the_sites_are_those_of_their_highest_cut_or_floor(seed: int, **kind: Any) -> None:
    model, centre = drawn(seed, **kind)
    slopes, norm_weights = model.site_slopes(centre)
    norm, sides = float(model.norms(centre[None])[0]), np.sign(centre[: model.n_features])
    for g in range(model.site_weights.shape[0]):
        highest, slope, norm_weight = norm * model.floor[g], np.zeros_like(centre), model.floor[g]
        for j in np.flatnonzero(model.site == g):
            height = model.heights(centre[None])[0, j]
            if height > highest:
                highest, slope, norm_weight = height, model.slope[j].copy(), model.norm_weight[j]
                slope[: model.n_features] += sides * model.swings[j]
        np.testing.assert_array_equal(slopes[g], slope)
        assert norm_weights[g] == norm_weight


@pytest.mark.parametrize(("norm", "p", "near"), [("l2", 12, True), ("l2", 5, False), ("linf", 12, False)])
@pytest.mark.parametrize("found", [True, False])
def test_a_small_minimum_with_a_cone_and_many_columns_is_begun_near(
    norm: TransportNorm, p: int, near: bool, found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Active sets are no use there; to the tolerance that counts from afar, and from there where it is not found."""
    model, centre = drawn(1, 2, p, True, norm, False, None)
    asked, of, solve = list[stated_program.StatedProgram](), stated_program.StatedProgram.of, solve_cone_program

    def noted(*given: Any) -> stated_program.StatedProgram:
        asked.append(of(*given))
        return asked[-1]

    def missed(program: ConeProgram, tolerance: float) -> Solution:
        status = SolverStatus.ROUNDING if program.duals is not None and not found else SolverStatus.SOLVED
        return replace(solve(program, tolerance), status=status)

    monkeypatch.setattr(stated_program.StatedProgram, "of", noted)
    monkeypatch.setattr(conic_interior_point, "solve_cone_program", missed)
    minimise(model, centre, within=1e-3)
    assert [each.program.duals is not None for each in asked] == ([near] if found or not near else [True, False])
    assert {each.tolerance for each in asked} == {1e-12}


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), sites=st.integers(1, 4), p=st.integers(10, 16), within=st.floats(1e-6, 1.0))
def test_a_small_minimum_that_is_begun_near_is_as_sharp_as_one_from_afar(
    seed: int, sites: int, p: int, within: float
) -> None:
    """However little of the bound is asked for: its multipliers prove the value at its point."""
    model, centre = drawn(seed, sites, p, True, "l2", False, None)
    near, afar = minimise(model, centre, within=within), minimise(model, centre)
    value, size = model.value(afar.point), 1.0 + abs(model.value(afar.point))
    assert abs(model.value(near.point) - value) <= 1e-9 * size
    bounds = [lower_bound(model, each.multipliers, each.point) for each in (near, afar)]
    assert bounds[0] >= bounds[1] - 1e-9 * size


@pytest.mark.parametrize("seed", range(8))
def test_cuts_that_are_flat_but_for_rounding_have_their_least_where_the_absolute_weights_do(seed: int) -> None:
    # A wide ball on a box, where zero weights are the best: every second cut bends by 1 / 2p a weight.
    random = np.random.default_rng(seed)
    sites, p = int(random.integers(1, 5)), int(random.integers(2, 12))
    bent = np.arange(2 * sites) % 2 == 0
    model = CutModel(
        np.full(sites, 1 / sites), np.zeros(sites), np.repeat(np.arange(sites), 2), np.where(bent, 1.0, 0.5),
        3e-17 * random.normal(size=(2 * sites, p + 1)), np.zeros(2 * sites), "linf", p,
        swing=np.where(bent[:, None], 1 / (2 * p), 0.0) * np.ones((2 * sites, p)),
    )
    found = minimise(model, np.zeros(p + 1))
    assert model.value(found.point) == pytest.approx(1.0, abs=1e-9)
    assert np.abs(found.point[:p]).max() < 1e-6
