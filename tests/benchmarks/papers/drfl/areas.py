"""The curves of all repetitions, the area under each, and whether DRFL's is at or above each rival's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from models.basics import FloatArray
from tests.benchmarks.papers.drfl.methods import METHODS
from tests.benchmarks.papers.drfl.tables import Scenario
from tests.benchmarks.papers.fdr_svm.cells import Row
from tests.benchmarks.papers.fdr_svm.command import markdown

MEAN = "mean of the three"


def area(levels: Sequence[float], values: FloatArray) -> FloatArray:
    """Trapezoids under values (..., L) over the levels (L,), divided by their length: a mean of the curve."""
    return np.asarray(np.trapezoid(values, levels, axis=-1) / (levels[-1] - levels[0]))


def _cells(rows: list[Row], scenario: Scenario) -> dict[str, dict[str, Row]]:
    return {
        method: {r["repetition"]: r for r in _in_order(rows) if (r["scenario"], r["method"]) == (scenario.name, method)}
        for method in METHODS
    }


def _in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: int(row["repetition"]))


def _curves(cells: dict[str, Row], sweep: int) -> FloatArray:
    """(repetitions, levels)."""
    return np.array([json.loads(row["curves"])[sweep] for row in cells.values()])


def curve_rows(scenarios: Sequence[Scenario], rows: list[Row]) -> list[dict[str, Any]]:
    """Mean and deviation over the repetitions at every level of every sweep."""
    found = []
    for scenario in scenarios:
        for method, cells in _cells(rows, scenario).items():
            for s, sweep in enumerate(scenario.sweeps if cells else ()):
                values = _curves(cells, s)
                for i, level in enumerate(sweep.levels):
                    found.append(
                        {"figure": scenario.figure, "scenario": scenario.name, "task": scenario.task,
                         "sweep": sweep.title, "method": method, "level": level, "mean": float(values[:, i].mean()),
                         "deviation": _deviation(values[:, i]), "repetitions": values.shape[0]}
                    )
    return found


def areas(scenarios: Sequence[Scenario], rows: list[Row]) -> list[dict[str, Any]]:
    """A row for each sweep, and for their mean, and method: mean area, and DRFL's lead on the same repetitions."""
    found = []
    for scenario in scenarios:
        cells = _cells(rows, scenario)
        by_sweep = [
            {
                method: dict(zip(own, area(sweep.levels, _curves(own, s)), strict=True))
                for method, own in cells.items() if own
            }
            for s, sweep in enumerate(scenario.sweeps)
        ]
        mean = {
            method: {r: np.mean([each[method][r] for each in by_sweep]) for r in own}
            for method, own in by_sweep[0].items()
        }
        for title, under in zip(titles(scenario), [*by_sweep, mean], strict=True):
            for method, own in under.items():
                lead = _leads(under["DRFL"], own, scenario)
                found.append(
                    {"figure": scenario.figure, "scenario": scenario.name, "task": scenario.task, "sweep": title,
                     "method": method, "area": float(np.mean(list(own.values()))),
                     "deviation": _deviation(np.array(list(own.values()))), "drfl_leads_by": float(lead.mean()),
                     "error_of_lead": _deviation(lead) / np.sqrt(lead.shape[0]),
                     "drfl_at_or_above": "" if method == "DRFL" else "yes" if lead.mean() >= 0 else "no"}
                )
    return found


def titles(scenario: Scenario) -> list[str]:
    """Names of the rows of a scenario: its sweeps, and their mean."""
    return [*(sweep.title for sweep in scenario.sweeps), MEAN]


def _leads(ours: dict[str, Any], other: dict[str, Any], scenario: Scenario) -> FloatArray:
    """DRFL's area less the other's on shared repetitions; turned round for an error, of which less is better."""
    sign = 1.0 if scenario.task == "classification" else -1.0
    return np.array([sign * (ours[r] - other[r]) for r in ours if r in other])


def _deviation(values: FloatArray) -> float:
    return float(np.std(values, ddof=1)) if values.shape[0] > 1 else 0.0


def table(scenarios: Sequence[Scenario], found: list[dict[str, Any]], rows: list[Row]) -> str:
    """Markdown: areas, the verdicts, and what cross-validation chose."""
    methods = list(METHODS)
    text = ""
    for task, what in (("classification", "accuracy"), ("regression", "mean squared error (less is better)")):
        own = [row for row in found if row["task"] == task]
        if not own:
            continue
        lines = []
        for scenario in scenarios:
            for title in titles(scenario) if scenario.task == task else ():
                by = {r["method"]: r for r in own if (r["scenario"], r["sweep"]) == (scenario.name, title)}
                cells = [f"{by[m]['area']:.4f} ± {by[m]['deviation']:.4f}" if m in by else "" for m in methods]
                lines.append([str(scenario.figure), scenario.name, title, *cells])
        text += f"Normalised area under the curve of {what}, mean and deviation over the repetitions.\n\n"
        text += markdown(["figure", "set", "sweep", *methods], lines) + "\n"
    text += (
        "DRFL at or above each rival (for errors: at or below); in brackets its lead and the lead's standard error.\n\n"
    )
    rivals, lines = [m for m in methods if m != "DRFL"], []
    for scenario in scenarios:
        for title in titles(scenario):
            by = {r["method"]: r for r in found if (r["scenario"], r["sweep"]) == (scenario.name, title)}
            lines.append([str(scenario.figure), scenario.name, title, *[_verdict(by.get(m)) for m in rivals]])
    text += markdown(["figure", "set", "sweep", *rivals], lines)
    text += "\nChosen by cross-validation, one entry a repetition (rho / kappa / theta), and its validation score.\n\n"
    lines = [
        [scenario.name, method, "; ".join(_chosen(row) for row in cells.values())]
        for scenario in scenarios
        for method, cells in _cells(rows, scenario).items()
        if method in ("DRFL", "AFL", "WAFL") and cells
    ]
    return text + markdown(["set", "method", "chosen"], lines)


def _verdict(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    word = "yes" if row["drfl_at_or_above"] == "yes" else "**no**"
    return f"{word} ({row['drfl_leads_by']:+.4f} ± {row['error_of_lead']:.4f})"


def _chosen(row: Row) -> str:
    setting = json.loads(row["setting"])
    parts = [f"{setting[name]:g}" for name in ("rho", "kappa", "theta")]
    return " / ".join(parts) + f" ({abs(float(row['validation'])):.3f})"
