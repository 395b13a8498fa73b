"""Plots of Figures 1 to 5, drawn without a screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402 - the backend must be chosen first

Curve = tuple[Any, Mapping[str, Any], Sequence[Mapping[str, Any]]]


def coverage_plot(systems: Mapping[str, Curve], path: Path) -> None:
    """A row of two panels for each system: coverage against radius, volume against level."""
    figure, grid = plt.subplots(len(systems), 2, figsize=(9, 3.2 * len(systems)), squeeze=False)
    for (left, right), (name, (radii, shares, levels)) in zip(grid, systems.items(), strict=True):
        full = max(float(radii[np.flatnonzero(np.asarray(share) < 1).max(initial=0)]) for share in shares.values())
        for method, share in shares.items():
            left.plot(radii, share, linewidth=0.8, label=method)
            right.plot([row["level"] for row in levels], [row[f"{method} volume, steady"] for row in levels],
                       marker="o", markersize=3, linewidth=1, label=method)
        left.set_xlim(0, 1.1 * full)
        left.set(title=f"{name}: holds the truth", xlabel="radius", ylabel="share of samples")
        right.set(title=f"{name}: volume", xlabel="share that holds the truth", ylabel="share of random systems")
        right.set_yscale("symlog", linthresh=1e-6)
        left.legend(fontsize=7)
        for axes in (left, right):
            axes.grid(alpha=0.3)
    save(figure, path)


def sweep_plot(scenarios: Sequence[Any], rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """A row of three panels for each scenario: mean and deviation of every method against the noise."""
    figure, grid = plt.subplots(len(scenarios), 3, figsize=(12, 3.2 * len(scenarios)), squeeze=False)
    for line, scenario in zip(grid, scenarios, strict=True):
        for axes, sweep in zip(line, scenario.sweeps, strict=True):
            own = [row for row in rows if (row["scenario"], row["sweep"]) == (scenario.name, sweep.title)]
            for method in dict.fromkeys(row["method"] for row in own):
                points = [row for row in own if row["method"] == method]
                x, mean, spread = (np.array([row[key] for row in points]) for key in ("level", "mean", "deviation"))
                (drawn,) = axes.plot(x, mean, marker="o", markersize=2.5, linewidth=1, label=method)
                axes.fill_between(x, mean - spread, mean + spread, color=drawn.get_color(), alpha=0.1, linewidth=0)
            axes.set_title(f"{scenario.name}: {sweep.title}", fontsize=8)
            axes.set_xlabel(f"{sweep.axis} of the noise", fontsize=7)
            axes.set_ylabel("accuracy" if scenario.task == "classification" else "mean squared error", fontsize=7)
            axes.tick_params(labelsize=6)
            axes.grid(alpha=0.3)
    grid.flat[0].legend(fontsize=6)
    save(figure, path)


def save(figure: Any, path: Path) -> None:
    """Write and close."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)
