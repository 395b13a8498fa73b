"""The experiments' own parts: distances on the line, the linear program, splits and noise, the choice, the areas."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from models.centralised.bundle import train_at_hand
from models.site_ambiguity.ball import MixtureBall
from tests.benchmarks.papers.drfl.areas import area, areas, table
from tests.benchmarks.papers.drfl.figure1 import first_stage, levels, second_stage, verdict, volume
from tests.benchmarks.papers.drfl.methods import METHODS, WHOLE, fit, problems, score, tuner
from tests.benchmarks.papers.drfl.settings import PAPER_GRID, Grid, Setting
from tests.benchmarks.papers.drfl.tables import (
    MINORITY_KEPT,
    N_CLIENTS,
    SCENARIOS,
    Noise,
    Rows,
    Scenario,
    folds,
    load,
    split,
    sweeps,
)
from tests.benchmarks.papers.drfl.tuning import Tried, choose, study
from tests.benchmarks.papers.drfl.two_clients import ALIKE, APART, anything, distance, drfl_radius, truth, wafl_radius
from tests.tables import table_or_skip

TOY = Scenario("toy", 9, "none", "classification", Noise(0.3, 0.3), sweeps(0.5, 0.0, 1.0))
SMALL = Grid(radii=(1e-3, 0.05), flip_costs=(0.5,), thetas=(0.1,))


def toy(seed: int, n: int = 90, p: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = rng.uniform(-1.0, 1.0, size=(n, p))
    return features, np.where(features @ np.arange(1.0, p + 1.0) + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)


def rows(seed: int, n: int = 90) -> Rows:
    features, labels = toy(seed, n)
    client = np.arange(n) % N_CLIENTS
    return Rows(features, labels, client, folds(client, np.random.default_rng(seed)))


@settings(max_examples=25, derandomize=True)
@given(st.integers(0, 10**6))
def test_the_distance_on_the_line_is_the_wasserstein_distance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, (one, other) = rng.integers(0, 5, size=6).astype(float), rng.dirichlet(np.ones(6), size=2)
    wanted = wasserstein_distance(points, points, one, other)
    assert float(distance(points, one, other)) == pytest.approx(wanted, abs=1e-12)


def test_equal_weights_put_the_mixture_within_the_larger_distance_of_the_clients() -> None:
    drawn = anything(np.random.default_rng(0), 2000)
    equal = replace(drawn, weights=np.full((2000, 2), 0.5))
    for system in (APART, ALIKE):
        assert (wafl_radius(system, equal, truth(system)) <= drfl_radius(system, equal, truth(system)) + 1e-12).all()
    assert (wafl_radius(APART, drawn, truth(APART)) > drfl_radius(APART, drawn, truth(APART))).any()


def test_wafl_needs_the_larger_radius_where_the_clients_are_apart_and_the_smaller_where_they_are_alike() -> None:
    radii = 5e-4 * np.arange(1, 200, dtype=np.float64)
    found = []
    for system in (APART, ALIKE):
        coverage = first_stage(system, radii, repeats=50)
        entered = second_stage(system, 20_000)
        for method, share in coverage.shares.items():
            exact = np.searchsorted(coverage.steady[method], radii, side="right") / coverage.steady[method].shape[0]
            assert np.abs(share - exact).max() < 0.35  # five deviations of a share of 50
            assert volume(entered[method], 10.0) == 1.0
        found += levels(system, coverage, entered)
    apart, alike = verdict(found)
    assert apart["WAFL larger: radius, steady"] == apart["levels"] == 19
    assert alike["WAFL larger: radius, steady"] == 0


@settings(max_examples=8, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 1e-3, 0.05, 0.5]), st.sampled_from([0.1, 1.0]),
       st.sampled_from([0.0, 0.1, WHOLE]))
def test_the_linear_program_has_the_certified_optimum(seed: int, radius: float, kappa: float, theta: float) -> None:
    data, setting = rows(seed, 45), Setting(radius, theta, kappa)
    fitted = tuner(data, "DRFL", "classification")
    fitted(Setting(0.02, 0.5, 0.3))  # a start from another setting's basis must not matter
    sites, shares = problems(data, "DRFL", setting, "classification")
    certified = train_at_hand(
        sites, weights=dict(zip(sites, shares.tolist(), strict=True)), mixture=MixtureBall("l1", theta), gap=1e-5
    ).certificate
    found = fitted(setting).risk
    assert certified.lower - 1e-7 <= found <= certified.upper + 1e-7


def test_the_methods_are_cases_of_drfl() -> None:
    data = rows(1)
    whole = fit(data, "DRFA", next(METHODS["DRFA"](SMALL)), "classification", 1e-4)
    plain = fit(data, "standard", Setting(), "classification", 1e-4)
    losses = [
        [
            np.maximum(0.0, 1.0 - data.labels * (data.features @ w[:-1] + w[-1]))[data.client == s].mean()
            for s in range(N_CLIENTS)
        ]
        for w in (whole.weights, plain.weights)
    ]
    assert whole.risk == pytest.approx(max(losses[0]), rel=1e-6)
    assert plain.risk == pytest.approx(float(np.mean(losses[1])), rel=1e-6)
    assert plain.risk - 1e-6 <= whole.risk <= max(losses[1]) * (1 + 1e-4)
    wafl, shares = problems(data, "WAFL", Setting(0.1), "classification")
    (site,) = wafl.values()
    assert (site.features.shape, shares.tolist()) == (data.features.shape, [1.0])
    assert len(list(METHODS["DRFL"](PAPER_GRID))) == 15 * 6 * 10


def test_noise_goes_to_the_first_client_and_thinning_to_the_rarer_class() -> None:
    features, labels = toy(2, 300)
    clean, noisy, thin = (
        split(replace(TOY, training_noise=Noise(0.0, d), imbalanced=i), features, labels, 4)[0]
        for d, i in ((0.0, False), (1.0, False), (1.0, True))
    )
    changed = (clean.features != noisy.features).any(axis=1)
    np.testing.assert_array_equal(changed, clean.client == 0)
    assert (clean.features.min(), clean.features.max()) == (-1.0, 1.0)
    for s, kept in enumerate(MINORITY_KEPT):
        before, after = (np.array([(d.labels[d.client == s] == y).sum() for y in (-1.0, 1.0)]) for d in (clean, thin))
        rarer = int(before[1] <= before[0])
        assert after[1 - rarer] == before[1 - rarer]
        assert after[rarer] == round(kept * before[rarer])
    again = split(replace(TOY, imbalanced=True), features, labels, 4)[1]
    np.testing.assert_array_equal(again.features, split(TOY, features, labels, 4)[1].features)


def test_the_most_robust_setting_within_one_standard_error_is_taken() -> None:
    steady, shaky = np.full(5, 0.9), np.array([0.88, 0.92, 0.9, 0.86, 0.94])
    tried = [
        Tried(Setting(0.1), shaky, 0.3),
        Tried(Setting(0.2), steady - 0.01, 0.5),
        Tried(Setting(0.5), steady - 0.1, 0.9),
    ]
    assert choose(tried).setting == Setting(0.2)
    assert choose([Tried(Setting(0.1), steady, 0.3), tried[1]]).setting == Setting(0.1)


def test_a_cell_learns_and_the_test_part_changes_no_choice() -> None:
    features, labels = toy(3, 200)
    train, test = split(TOY, features, labels, 0)
    one = study(TOY, train, test, "DRFL", 0, SMALL)
    other = study(TOY, train, replace(test, labels=-test.labels), "DRFL", 0, SMALL)
    assert one.setting == other.setting
    assert one.gap <= 1e-4
    lines, turned = json.loads(one.curves), json.loads(other.curves)
    assert [len(line) for line in lines] == [9, 9, 9]
    assert lines[1][0] > 0.8  # no noise at all
    np.testing.assert_allclose(np.add(lines, turned), 1.0)


def test_areas_and_verdicts() -> None:
    assert area([0.0, 1.0, 3.0], np.array([1.0, 0.0, 1.0])) == pytest.approx((0.5 + 1.0) / 3)
    cells = [
        {"scenario": "toy", "method": method, "repetition": str(r), "validation": 0.8,
         "setting": json.dumps({"rho": 0, "kappa": 1, "theta": 0}),
         "curves": json.dumps([[level + 0.001 * r] * 9] * 3)}
        for method, level in (("DRFL", 0.8), ("AFL", 0.7), ("WAFL", 0.9)) for r in range(3)
    ]
    found = areas([TOY], cells)
    assert {row["method"]: row["drfl_at_or_above"] for row in found} == {"DRFL": "", "AFL": "yes", "WAFL": "no"}
    assert table([TOY], found, cells).count("**no** (-0.1000") == 4
    errors = areas([replace(TOY, task="regression")], cells)
    assert {row["method"]: row["drfl_at_or_above"] for row in errors} == {"DRFL": "", "AFL": "no", "WAFL": "yes"}


@pytest.mark.parametrize("chosen", SCENARIOS, ids=lambda each: each.name)
def test_the_tables_are_read_whole(chosen: Scenario) -> None:
    table_or_skip(chosen.file)
    features, labels = load(chosen)
    train, test = split(chosen, features, labels, 1)
    assert features.shape == {"statlog_heart": (270, 13), "abalone": (4177, 8)}.get(chosen.file, (683, 9))
    assert test.labels.shape[0] == labels.shape[0] - round(0.6 * labels.shape[0])
    assert np.isfinite(score(np.zeros(features.shape[1] + 1), train, chosen.task))
