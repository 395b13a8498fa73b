"""What Figures 1 and 2 have in common: curves of the mean correct classification rate against one hyperparameter.

Where another hyperparameter must be fixed it has the value of the paper's local experiment: gamma 100 and 220 rounds
for SM, rho 0.001 and 100 rounds for ADMM; kappa 0.5 and beta 10 where they are not the ones that vary.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from models.basics import FloatArray
from models.centralised.hinge import train_pooled
from models.problem import RobustSpec, SiteProblem
from tests.benchmarks.papers.fdr_svm import command
from tests.benchmarks.papers.fdr_svm.cells import Job, Row, run_cells
from tests.benchmarks.papers.fdr_svm.choice import sites_of
from tests.benchmarks.papers.fdr_svm.plots import line_plots
from tests.benchmarks.papers.fdr_svm.printed import ROUNDS, Site, admm_points, sm_points
from tests.benchmarks.papers.fdr_svm.pump import SETTINGS, pump_split
from tests.benchmarks.papers.fdr_svm.uci import Split, correct_rate, scaled

KNOBS = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
BETAS = (0.1, 1.0, 10.0, 100.0)
FLIP_COSTS = (0.1, 0.25, 0.5, 0.75, 1.0)
KAPPA, BETA = 0.5, 10.0

Points = Callable[[list[Site], float, int], Iterator[FloatArray]]


@dataclass(frozen=True)
class Printed:
    """A method as printed: points, fixed knob and rounds, whether features are scaled."""

    points: Points
    knob: float
    rounds: int
    in_unit_box: bool
    regularised: bool = False
    """Whether the label flip cost is infinite, whatever its axis says: the curve over it is level."""


METHODS = {
    "SM": Printed(lambda s, c, t: sm_points(s, c, 1.0, t), 1e2, 220, True),
    "SM, code's step": Printed(lambda s, c, t: sm_points(s, c, 0.5, t), 1e2, 220, True),
    "ADMM": Printed(lambda s, c, t: admm_points(s, c, 0.0, t), 1e-3, 100, False),
    "ADMM-SC": Printed(lambda s, c, t: admm_points(s, c, 18.0 * c, t), 1e-3, 100, False),
    "ADMM-REG": Printed(lambda s, c, t: admm_points(s, c, 0.0, t), 1e-3, 100, False, regularised=True),
}
MENDED = "mended and certified"
CENTRAL = "Central (DR-SVM), best"


@dataclass(frozen=True)
class Curve:
    """Values of the hyperparameter and the rate at each, as JSON lists."""

    x: str
    rate: str


def curve(setting: str, method: str, sweep: str, repetition: int, fast: bool, cache: Path) -> Curve:
    """One curve of one repetition; ``fast`` leaves out every other value of gamma and rho."""
    data = pump_split(setting, repetition, cache)
    pairs = _central(data) if method == CENTRAL else _mended(data, sweep) if method == MENDED else None
    if pairs is None:
        printed = METHODS[method]
        pairs = _printed(scaled(data) if printed.in_unit_box else data, printed, sweep, KNOBS[::2] if fast else KNOBS)
    return Curve(json.dumps([x for x, _ in pairs]), json.dumps([y for _, y in pairs]))


def _printed(data: Split, method: Printed, sweep: str, knobs: tuple[float, ...]) -> list[tuple[float, float]]:
    rows = np.ones_like(data.fold, dtype=bool)

    def sites(beta: float, kappa: float) -> list[Site]:
        return sites_of(data, rows, beta, math.inf if method.regularised else kappa)

    def last(beta: float, kappa: float, knob: float) -> float:
        *_, weights = method.points(sites(beta, kappa), knob, method.rounds)
        return _rate(data, weights)

    if sweep == "rounds":
        points = enumerate(method.points(sites(BETA, KAPPA), method.knob, ROUNDS[-1]), start=1)
        return [(float(t), _rate(data, weights)) for t, weights in points if t in ROUNDS]
    if sweep == "knob":
        return [(knob, last(BETA, KAPPA, knob)) for knob in knobs]
    if sweep == "beta":
        return [(beta, last(beta, KAPPA, method.knob)) for beta in BETAS]
    if method.regularised:
        level = last(BETA, KAPPA, method.knob)
        return [(kappa, level) for kappa in FLIP_COSTS]
    return [(kappa, last(BETA, kappa, method.knob)) for kappa in FLIP_COSTS]


def _mended(data: Split, sweep: str) -> list[tuple[float, float]]:
    """The optimum needs no rounds and no knob: a flat line there."""

    def at(beta: float, kappa: float) -> float:
        sites = sites_of(data, np.ones_like(data.fold, dtype=bool), beta, kappa)
        problems = {
            str(g): SiteProblem(s.features, s.labels, RobustSpec(s.radius, kappa, "linf", fit_intercept=False))
            for g, s in enumerate(sites)
        }
        return _rate(data, train_pooled(problems).weights)

    if sweep in ("rounds", "knob"):
        flat = at(BETA, KAPPA)
        return [(float(x), flat) for x in (ROUNDS if sweep == "rounds" else KNOBS)]
    if sweep == "beta":
        return [(beta, at(beta, KAPPA)) for beta in BETAS]
    return [(kappa, at(BETA, kappa)) for kappa in FLIP_COSTS]


def _central(data: Split) -> list[tuple[float, float]]:
    """The paper's line: the best rate of the centralised model over its grid, picked on the test part as there."""
    best = 0.0
    for radius in (1e-5, 1e-4, 1e-3, 1e-2, 1e-1):
        for kappa in FLIP_COSTS:
            spec = RobustSpec(radius, kappa, "linf", fit_intercept=False)
            best = max(best, _rate(data, train_pooled({"all": SiteProblem(data.features, data.labels, spec)}).weights))
    return [(1.0, best)]


def _rate(data: Split, weights: FloatArray) -> float:
    return correct_rate(data.test_labels, data.test_features @ weights)


def run_figure(args: argparse.Namespace, name: str, sweeps: dict[str, str]) -> int:
    """Run and draw a figure of some sweeps: for each setting and sweep a panel, a line for each method."""
    cache = args.out.parent / "pump"
    jobs = []
    for r in command.repetitions(args):
        for setting in SETTINGS:
            for method in [*METHODS, MENDED, CENTRAL]:
                for sweep in sweeps if method != CENTRAL else ["all"]:
                    key = (("setting", setting), ("method", method), ("sweep", sweep), ("repetition", str(r)))
                    jobs.append(Job(key, curve, (setting, method, sweep, r, args.quick, cache)))
    rows = run_cells(jobs, command.state_file(args), args.jobs)
    found = _mean_curves(rows, list(sweeps))
    command.write_csv(args.out / f"{name}.csv", found)
    command.write_json(args.json, found)
    panels: dict[str, dict[str, tuple[list[float], list[float]]]] = {}
    labels = {}
    for setting in SETTINGS:
        for sweep, label in sweeps.items():
            title = f"{setting}: {label}"
            labels[title] = label
            panels[title] = {}
            for method in [*METHODS, MENDED, CENTRAL]:
                own = [
                    row for row in found if (row["setting"], row["sweep"], row["method"]) == (setting, sweep, method)
                ]
                if own:
                    panels[title][method] = ([row["x"] for row in own], [row["mccr"] for row in own])
    line_plots(panels, x_label=labels, y_label="mCCR", path=args.out / f"{name}.png", across=len(sweeps))
    text = _table(found, sweeps)
    (args.out / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


def _mean_curves(rows: list[Row], sweeps: list[str]) -> list[dict[str, Any]]:
    """Mean over the repetitions at every value; the central model's line is drawn across each sweep."""
    found: list[dict[str, Any]] = []
    for setting in SETTINGS:
        for sweep in sweeps:
            across: list[float] = []
            for method in [*METHODS, MENDED, CENTRAL]:
                wanted = "all" if method == CENTRAL else sweep
                own = [r for r in rows if (r["setting"], r["method"], r["sweep"]) == (setting, method, wanted)]
                if not own:
                    continue
                values = np.mean([json.loads(r["rate"]) for r in own], axis=0)
                x = json.loads(own[0]["x"]) if method != CENTRAL else [min(across), max(across)]
                across += x
                for at, rate in zip(x, np.resize(values, len(x)), strict=True):
                    found.append(
                        {"setting": setting, "sweep": sweep, "method": method, "x": at, "mccr": float(rate),
                         "repetitions": len(own)}
                    )
    return found


def _table(found: list[dict[str, Any]], sweeps: dict[str, str]) -> str:
    """Best and worst rate of each method over each sweep: how much it depends on the hyperparameter."""
    lines = []
    for setting in SETTINGS:
        for method in [*METHODS, MENDED, CENTRAL]:
            cells = []
            for sweep in sweeps:
                own = [r for r in found if (r["setting"], r["sweep"], r["method"]) == (setting, sweep, method)]
                rates = [r["mccr"] for r in own]
                best = max(own, key=lambda r: r["mccr"])["x"] if own else 0.0
                cells.append(f"{min(rates):.3f} .. {max(rates):.3f} (best at {best:g})" if rates else "")
            lines.append([setting, method, *cells])
    return command.markdown(["setting", "method", *[f"mCCR over {label}" for label in sweeps.values()]], lines)
