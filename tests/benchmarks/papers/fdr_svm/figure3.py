"""Figure 3: run time against the number of sites G, samples N and features P.

``python -m tests.benchmarks.papers.fdr_svm.figure3 [--quick] [--repetitions N] [--json FILE] [--out DIR]``

Data of ``make_classification`` as in the paper's appendix C.5: a standard Gaussian for each class around a vertex of a
hypercube of side 2.4, classes and sites equally large, kappa 0.25, radius 1 / (10 N_g). The paper's runs have no
stopping rule: what it measures is the time to the best mean correct classification rate over its grid of rounds and
of gamma or rho, and so it is here. Ballast's level bundle runs until its gap of 1e-4 is certified. Processor seconds
of one process that does the work of all sites, one after another. The paper's fourth setting prints N = 4, taken as
1,000. Full: 50 repetitions, or N; quick: 1, and every other value of each setting.
"""

from __future__ import annotations

from tests.benchmarks.papers.fdr_svm import command  # first: it keeps the BLAS to one thread

# isort: split
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import make_classification

from models.basics import FloatArray
from models.centralised.hinge import train_pooled
from models.problem import RobustSpec, SiteProblem
from models.simulation.federation import train
from tests.benchmarks.papers.fdr_svm.cells import Job, Row, run_cells
from tests.benchmarks.papers.fdr_svm.plots import line_plots
from tests.benchmarks.papers.fdr_svm.printed import Site, admm_points, sm_points
from tests.benchmarks.papers.fdr_svm.uci import correct_rate

KAPPA, BETA, SIDE, TEST_ROWS = 0.25, 10.0, 2.4, 1000
SETTINGS: dict[str, list[tuple[int, int, int, int]]] = {
    "sites, N fixed": [(g, g, 1000, 4) for g in (10, 20, 30, 40, 50)],
    "sites, N = 100 G": [(g, g, 100 * g, 4) for g in (10, 20, 30, 40, 50)],
    "samples": [(n, 10, n, 4) for n in (1000, 1500, 2000, 2500, 3000)],
    "features": [(p, 10, 1000, p) for p in (4, 6, 8, 10, 12)],
}
"""For each setting its values: what is plotted, then G, N, P."""

Points = Callable[[list[Site], float, int], Iterator[FloatArray]]
PRINTED: dict[str, tuple[Points, tuple[float, ...], tuple[int, ...]]] = {
    "SM": (lambda s, c, t: sm_points(s, c, 1.0, t), (1e1, 1e2, 1e3), (140, 180, 220)),
    "ADMM": (lambda s, c, t: admm_points(s, c, 0.0, t), (1e-3, 1e-2, 1e-1), (10, 20, 30)),
}
METHODS = ("Central (DR-SVM)", *PRINTED, "ADMM-SC", "level-bundle", "level-bundle-plain")


@dataclass(frozen=True)
class Timing:
    """Seconds to the best rate (or to the certificate), that rate, rounds, and the certified gap (NaN without)."""

    seconds: float
    mccr: float
    rounds: int
    gap: float


@dataclass(frozen=True)
class Data:
    """Sites and test rows."""

    sites: list[Site]
    features: FloatArray
    labels: FloatArray

    def rate(self, weights: FloatArray) -> float:
        """Mean correct classification rate on the test rows."""
        return correct_rate(self.labels, self.features @ weights)


def draw(n_sites: int, n_rows: int, n_features: int, repetition: int) -> Data:
    """Sites and 1,000 test rows from one draw."""
    features, classes = make_classification(
        n_rows + TEST_ROWS, n_features, n_informative=n_features, n_redundant=0, n_clusters_per_class=1,
        class_sep=0.5 * SIDE, flip_y=0.0, random_state=repetition,
    )
    labels = np.where(classes == 1, 1.0, -1.0)
    train_rows, test_rows = np.split(np.arange(n_rows + TEST_ROWS), [n_rows])
    order = np.argsort(labels[train_rows], kind="stable")
    site = np.empty(n_rows, dtype=int)
    site[order] = np.arange(n_rows) % n_sites
    sites = [
        Site(features[train_rows][site == g], labels[train_rows][site == g],
             1.0 / (BETA * int((site == g).sum())), KAPPA)
        for g in range(n_sites)
    ]
    return Data(sites, features[test_rows], labels[test_rows])


def run_cell(method: str, n_sites: int, n_rows: int, n_features: int, repetition: int) -> Timing:
    """Time one method on one draw."""
    data = draw(n_sites, n_rows, n_features, repetition)
    if method in PRINTED:
        return _peak(data if method != "SM" else _in_unit_box(data), *PRINTED[method])
    if method == "ADMM-SC":
        ratio = least_ridge(n_sites)
        points: Points = lambda s, c, t: admm_points(s, c, ratio * c, t)  # noqa: E731 - as its neighbours above
        return _peak(data, points, *PRINTED["ADMM"][1:])
    if method == "Central (DR-SVM)":
        return _central(data)
    began = time.process_time()
    run = train(_problems(data.sites), method=method, gap=1e-4, max_rounds=300)
    return Timing(time.process_time() - began, data.rate(run.weights), run.n_rounds, run.certificate.gap)


def least_ridge(n_sites: int) -> float:
    """Theorem 3's smallest tau over rho for G sites of equal weight: 18 for four. The sites but the last decide."""
    return n_sites * max(g * (2 * n_sites + 1 - g) for g in range(1, n_sites)) / 4


def _peak(data: Data, points: Points, knobs: tuple[float, ...], rounds: tuple[int, ...]) -> Timing:
    """The quickest of the runs of the grid that reach the best rate."""
    found = []
    for knob in knobs:
        began = time.process_time()
        judging = 0.0
        for t, weights in enumerate(points(data.sites, knob, rounds[-1]), start=1):
            if t in rounds:
                pause = time.process_time()
                found.append((-data.rate(weights), pause - began - judging, t))
                judging += time.process_time() - pause
    rate, seconds, t = min(found)
    return Timing(seconds, -rate, t, math.nan)


def _central(data: Data) -> Timing:
    """The centralised model at the best rate of its grid: the time of that one solve."""
    features = np.vstack([site.features for site in data.sites])
    labels = np.concatenate([site.labels for site in data.sites])
    found = []
    for radius in (1e-5, 1e-4, 1e-3, 1e-2, 1e-1):
        for kappa in (0.1, 0.25, 0.5, 0.75, 1.0):
            began = time.process_time()
            spec = RobustSpec(radius, kappa, "linf", fit_intercept=False)
            run = train_pooled({"all": SiteProblem(features, labels, spec)})
            found.append((-data.rate(run.weights), time.process_time() - began, run.certificate.gap))
    rate, seconds, gap = min(found)
    return Timing(seconds, -rate, 1, gap)


def _problems(sites: list[Site]) -> dict[str, SiteProblem]:
    return {
        str(g): SiteProblem(s.features, s.labels, RobustSpec(s.radius, KAPPA, "linf", fit_intercept=False))
        for g, s in enumerate(sites)
    }


def _in_unit_box(data: Data) -> Data:
    """SM's features, scaled to [0, 1] by the training rows."""
    rows = np.vstack([site.features for site in data.sites])
    low, width = rows.min(axis=0), np.ptp(rows, axis=0)
    sites = [Site((s.features - low) / width, s.labels, s.radius, s.label_flip_cost) for s in data.sites]
    return Data(sites, (data.features - low) / width, data.labels)


def summary(rows: list[Row]) -> list[dict[str, Any]]:
    """Means over the repetitions."""
    found = []
    for setting, values in SETTINGS.items():
        for x, n_sites, n_rows, n_features in values:
            for method in METHODS:
                wanted = (setting, str(x), method)
                own = [r for r in rows if (r["setting"], r["x"], r["method"]) == wanted]
                if own:
                    mean = {
                        name: float(np.mean([float(r[name]) for r in own])) for name in ("seconds", "mccr", "rounds")
                    }
                    found.append(
                        {"setting": setting, "x": x, "sites": n_sites, "samples": n_rows, "features": n_features,
                         "method": method, "repetitions": len(own), **mean, "gap": max(r["gap"] for r in own)}
                    )
    return found


def main() -> int:
    """Run, resume, write."""
    args = command.figure_parser(__doc__, "figure3").parse_args()
    jobs = []
    for r in command.repetitions(args):
        for setting, values in SETTINGS.items():
            for x, *sizes in values[::2] if args.quick else values:
                for method in METHODS:
                    key = (("setting", setting), ("x", str(x)), ("method", method), ("repetition", str(r)))
                    jobs.append(Job(key, run_cell, (method, *sizes, r)))
    found = summary(run_cells(jobs, command.state_file(args), args.jobs))
    command.write_csv(args.out / "figure3.csv", found)
    command.write_json(args.json, found)
    panels: dict[str, dict[str, tuple[list[float], list[float]]]] = {}
    lines = []
    for setting in SETTINGS:
        panels[setting] = {}
        for method in METHODS:
            own = [row for row in found if (row["setting"], row["method"]) == (setting, method)]
            panels[setting][method] = ([row["x"] for row in own], [row["seconds"] for row in own])
            cells = [
                f"{row['x']}: {row['seconds']:.3g} s, {row['rounds']:.0f} rounds, {row['mccr']:.3f}" for row in own
            ]
            lines.append([setting, method, "; ".join(cells)])
    line_plots(panels, x_label="G, G, N, P", y_label="seconds", path=args.out / "figure3.png", log_x=False, log_y=True)
    text = command.markdown(["against", "method", "value: seconds, rounds, mCCR"], lines)
    (args.out / "figure3.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
