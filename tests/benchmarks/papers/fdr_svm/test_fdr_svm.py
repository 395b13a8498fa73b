"""The experiments' own parts: the printed LP, the splits, the state of a run, the table."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from models.methods.splitting.consensus_admm import smallest_ridge
from models.problem import RobustSpec, ServerProblem, SiteProblem, SiteTerms
from models.worst_case.risk import worst_case_risk
from tests.benchmarks.papers.fdr_svm.cells import Job, run_cells
from tests.benchmarks.papers.fdr_svm.choice import Grid, sites_of
from tests.benchmarks.papers.fdr_svm.columns import ballast, mended, rival
from tests.benchmarks.papers.fdr_svm.figure3 import least_ridge
from tests.benchmarks.papers.fdr_svm.printed import Site, admm_points, printed_atoms, printed_subgradient, sm_points
from tests.benchmarks.papers.fdr_svm.rivals import SETTINGS as RIVALS
from tests.benchmarks.papers.fdr_svm.rivals import knobs, rival_points
from tests.benchmarks.papers.fdr_svm.table1 import summary, table
from tests.benchmarks.papers.fdr_svm.uci import N_SITES, SETS, Split, UciSet, f1_macro, f1_positive, scaled, split
from tests.tables import table_or_skip


def toy(seed: int, n: int = 12, p: int = 3) -> Site:
    rng = np.random.default_rng(seed)
    features = rng.uniform(size=(n, p))
    labels = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    return Site(features, labels, float(rng.choice([1e-3, 0.02])), float(rng.choice([0.5, 1.0])))


def printed_lp(weights: np.ndarray, site: Site) -> float:
    """The LP of eq. 7 as printed, by HiGHS: variables b-, q+, q-, bounds of their sizes; b+ = 1 - b-."""
    n, p = site.features.shape
    x, y = site.features, site.labels
    push = -(y[:, None] * weights)
    cost = np.concatenate([2.0 * push.sum(axis=1) * 0 - 2.0 * (push * x).sum(axis=1), push.ravel(), -push.ravel(),
                           np.zeros(2 * n)])
    size = cost.shape[0]
    rows, limits = [], []

    def row(entries: dict[int, float], limit: float) -> None:
        line = np.zeros(size)
        for at, value in entries.items():
            line[at] = value
        rows.append(line)
        limits.append(limit)

    for i in range(n):
        for j in range(p):
            plus, minus = n + i * p + j, n + n * p + i * p + j
            bound_plus, bound_minus = n + 2 * n * p + i, 2 * n + 2 * n * p + i
            for q, bound in ((plus, bound_plus), (minus, bound_minus)):
                row({q: 1.0, bound: -1.0}, 0.0)
                row({q: -1.0, bound: -1.0}, 0.0)
            row({i: -(x[i, j] - 1), plus: -1.0}, -(x[i, j] - 1))
            row({i: x[i, j], plus: 1.0}, x[i, j])
            row({i: x[i, j] - 1, minus: -1.0}, 0.0)
            row({i: -x[i, j], minus: 1.0}, 0.0)
    budget = dict.fromkeys(range(n), site.label_flip_cost) | dict.fromkeys(range(n + 2 * n * p, size), 1.0)
    row(budget, n * site.radius)
    bounds = [(0.0, 1.0)] * n + [(None, None)] * (2 * n * p) + [(0.0, None)] * (2 * n)
    found = linprog(-cost, A_ub=np.array(rows), b_ub=limits, bounds=bounds, method="highs")
    return float((-found.fun + (push * x).sum()) / n)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.sampled_from([1e-3, 0.02, 0.3, 2.0]))
@example(seed=1, radius=0.3)
@example(seed=2, radius=2.0)
def test_the_printed_lp_is_solved(seed: int, radius: float) -> None:
    """Large balls too: a row that has been moved to a wall may be flipped next, and moved the other way."""
    site = replace(toy(seed), radius=radius)
    weights = np.random.default_rng(seed + 1).normal(size=3)
    atoms = printed_atoms(weights, site)
    assert atoms.credited == pytest.approx(printed_lp(weights, site), abs=1e-7)
    assert ((atoms.points >= -1e-12) & (atoms.points <= 1 + 1e-12)).all()
    turned = atoms.points.copy()
    if atoms.apart is not None:
        turned[atoms.apart[0]] = atoms.apart[1]
    credited, spent = 0.0, 0.0
    for points, shares, sign in ((atoms.points, 1.0 - atoms.flipped, -1.0), (turned, atoms.flipped, 1.0)):
        away = site.features - points
        scores = site.labels * ((site.features + away) @ weights)  # a move counts for what the opposite one would do
        credited += float(shares @ (sign * scores)) / site.labels.size
        spent += float(shares @ (np.abs(away).max(axis=1) + (site.label_flip_cost if sign > 0 else 0.0)))
    assert credited == pytest.approx(atoms.credited, abs=1e-9)
    assert spent <= site.labels.size * radius + 1e-9


def test_the_printed_subgradient_is_that_of_the_atoms() -> None:
    """A flipped share that stands apart from the rest of its row counts where it stands."""
    apart = 0
    for seed in range(40):
        site = replace(toy(seed), radius=0.3)
        weights = np.random.default_rng(seed + 1).normal(size=3)
        atoms = printed_atoms(weights, site)
        slope = np.zeros(3)
        for i, label in enumerate(site.labels):
            far = atoms.apart is not None and atoms.apart[0] == i
            apart += far
            turned = atoms.apart[1] if far else atoms.points[i]
            share = atoms.flipped[i]
            for point, mass, sign in ((atoms.points[i], 1.0 - share, label), (turned, share, -label)):
                slope -= mass * sign * point * (1.0 - sign * (point @ weights) > 0) / site.labels.size
        np.testing.assert_allclose(printed_subgradient(weights, site), slope, atol=1e-12)
    assert apart


def test_the_printed_distribution_falls_short_of_the_worst_case() -> None:
    """The features move the harmless way: the risk there is below the true worst case."""
    site = Site(*SITE_OF_THREE, 0.3, 10.0)
    weights = np.array([3.0, -2.0])
    atoms = printed_atoms(weights, site)
    losses = np.maximum(0.0, 1.0 - site.labels * (atoms.points @ weights))
    true = worst_case_risk(
        weights, site.features, site.labels, radius=0.3, label_flip_cost=10.0, transport_norm="linf", support=(0.0, 1.0)
    )
    empirical = np.maximum(0.0, 1.0 - site.labels * (site.features @ weights)).mean()
    assert losses.mean() < empirical < true.value


SITE_OF_THREE = (np.array([[0.2, 0.8], [0.6, 0.4], [0.9, 0.1]]), np.array([1.0, -1.0, -1.0]))


def test_admm_as_printed_comes_to_the_mended_optimum() -> None:
    from models.centralised.hinge import train_pooled

    sites = [toy(1, 20), toy(2, 20)]
    *_, weights = admm_points(sites, 0.1, 0.0, 400)
    problems = {
        str(g): SiteProblem(s.features, s.labels, RobustSpec(s.radius, s.label_flip_cost, "linf", fit_intercept=False))
        for g, s in enumerate(sites)
    }
    best = train_pooled(problems)
    from models.worst_case.risk import site_risk

    reached = np.mean([site_risk(weights, problem).value for problem in problems.values()])
    assert reached == pytest.approx(best.certificate.upper, rel=1e-2)


def test_the_subgradient_method_takes_the_step_rule_it_is_given() -> None:
    site = toy(3, 20)
    first = [next(sm_points([site], 2.0, power, 2)) for power in (0.5, 1.0)]
    second = [list(sm_points([site], 2.0, power, 2))[1] for power in (0.5, 1.0)]
    np.testing.assert_array_equal(*first)
    ratio = np.linalg.norm(second[0] - first[0]) / np.linalg.norm(second[1] - first[1])
    assert ratio == pytest.approx(np.sqrt(2.0))


@pytest.mark.parametrize("n_sites", [4, 10, 50])
def test_figure_3_takes_the_smallest_ridge_of_theorem_3(n_sites: int) -> None:
    terms = tuple(SiteTerms(str(g), 1.0 / n_sites, 0.1, 1.0) for g in range(n_sites))
    problem = ServerProblem(2, terms, "linf", fit_intercept=False)
    assert least_ridge(n_sites) == pytest.approx(smallest_ridge(problem, 1.0))
    assert n_sites != 4 or least_ridge(n_sites) == 18.0


def small_split(seed: int = 0) -> Split:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(120, 2))
    labels = np.where(features @ [1.0, -1.0] + 0.1 * rng.normal(size=120) > 0.2, 1.0, -1.0)
    site, fold = np.arange(80) % 4, np.arange(80) // 4 % 5
    return Split(features[:80], labels[:80], site, fold, features[80:], labels[80:])


def test_columns_learn_and_the_test_part_changes_no_choice() -> None:
    data = small_split()
    one = ballast(data, Grid())
    assert one.f1 > 0.9
    assert one.gap <= 1e-4
    other = ballast(
        Split(data.features, data.labels, data.site, data.fold, data.test_features, -data.test_labels), Grid()
    )
    assert other.tuned == one.tuned
    assert other.f1 < 0.2
    assert mended(data, Grid()).gap <= 1e-4
    radius = sites_of(data, data.fold != 0, 10.0, 1.0)[0].radius
    assert radius == pytest.approx(1 / (10 * 20))


@pytest.mark.parametrize("chosen", SETS, ids=lambda each: each.name)
def test_splits_are_stratified_equal_and_repeatable(chosen: UciSet) -> None:
    table_or_skip(chosen.file)
    data, again = split(chosen, 3), split(chosen, 3)
    np.testing.assert_array_equal(data.features, again.features)
    counts = np.bincount(data.site)
    assert counts.shape == (N_SITES,)
    assert np.ptp(counts) <= 2
    shares = [(data.labels[data.site == g] > 0).mean() for g in range(N_SITES)]
    assert np.ptp([*shares, (data.test_labels > 0).mean()]) < 0.06
    assert set(data.fold) == set(range(5))
    unit = scaled(data)
    assert (unit.features.min(), unit.features.max()) == (0.0, 1.0)


def test_f1_counts_a_score_of_zero_as_positive() -> None:
    labels = np.array([1.0, 1.0, -1.0, -1.0])
    assert f1_positive(labels, np.zeros(4)) == pytest.approx(2 / 3)
    assert f1_macro(labels, np.zeros(4)) == pytest.approx(1 / 3)
    assert f1_positive(labels, np.array([1.0, -1.0, -1.0, -1.0])) == pytest.approx(2 / 3)


@dataclass(frozen=True)
class Number:
    value: float


def number(value: float) -> Number:
    return Number(value)


def never(value: float) -> Number:
    raise AssertionError(f"{value} is done")


def test_a_run_resumes_where_it_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = tmp_path / "state.csv"
    keys = [(("set", 'Rice, "long"'), ("repetition", str(r))) for r in range(3)]
    run_cells([Job(key, number, (float(r),)) for r, key in enumerate(keys[:2])], state, 1)
    jobs = [Job(key, never, (0.0,)) for key in keys[:2]] + [Job(keys[2], number, (2.0,))]
    rows = run_cells(jobs, state, 1)
    assert [row["value"] for row in rows] == [0.0, 1.0, 2.0]
    assert "2 of 3 cells" in capsys.readouterr().out


def test_the_table_says_plainly_what_was_not_reached() -> None:
    rows = [
        {"set": chosen.name, "column": column, "repetition": str(r), "f1": f1 + 0.001 * r, "f1_macro": f1,
         "correct_rate": f1, "gap": 1e-6, "seconds": 1.0, "tuned": json.dumps({})}
        for chosen in SETS
        for column, f1 in (("Ballast's default", 0.99 if chosen.name != "MM" else 0.5), ("mended and certified", 0.7))
        for r in range(6)
    ]
    found = summary(rows)
    text = table(found)
    assert text.count("**not reached**") == 1
    assert text.count("| reached |") == 6
    stated = rows[0] | {"column": "FedAvg, code's settings"}
    rivals = summary([*rows, stated, rows[0] | {"column": "FedAvg, our features"}])
    assert [row["printed_f1"] for row in rivals if "FedAvg" in row["column"]] == [0.95, None]
    ours = {row["set"]: row for row in found if row["column"] == "mended and certified"}
    assert ours["Rice"]["p_value_ours_better"] < 0.05 < ours["MM"]["p_value_ours_better"]


def test_fedsgd_takes_the_steps_of_the_appendix() -> None:
    """Hinge + ||w||^2 / (10 N_g), equal site weights, step gamma / t, all rows; by hand for three rounds."""
    sites, weights = [toy(1, 20), toy(2, 30)], np.zeros(3)
    for t, found in enumerate(
        rival_points("FedSGD", [replace(s, radius=1 / (10 * s.labels.size)) for s in sites], 0.5, 3)
    ):
        slopes = []
        for site in sites:
            wrong = site.labels * (site.features @ weights) < 1
            hinge = -(wrong * site.labels) @ site.features / site.labels.size
            slopes.append(hinge + 2.0 * weights / (10 * site.labels.size))
        weights = weights - 0.5 / (t + 1) * np.mean(slopes, axis=0)
        np.testing.assert_allclose(found, weights, atol=1e-12)


@pytest.mark.parametrize("name", RIVALS)
def test_rivals_learn_and_a_short_run_is_the_beginning_of_a_long_one(name: str) -> None:
    data = small_split()
    sites = sites_of(data, np.ones_like(data.fold, dtype=bool), 10.0, 1.0)
    knob = knobs(name)[2]
    points = list(rival_points(name, sites, knob, 12))
    np.testing.assert_array_equal(points[4], list(rival_points(name, sites, knob, 5))[-1])
    assert rival(name)(data, Grid(rounds=(5, 12), folds=1)).f1 > 0.85
