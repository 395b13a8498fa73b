"""Plots of the tables and figures, drawn without a screen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402 - the backend must be chosen first


def table_plot(found: Sequence[dict[str, Any]], groups: list[str], group: str, columns: list[str], path: Path) -> None:
    """Mean and deviation of every column, group by group, with the printed values as crosses."""
    figure, axes = plt.subplots(figsize=(11, 4.5))
    width = 0.8 / len(columns)
    axes.set_prop_cycle(color=plt.get_cmap("tab20").colors)
    for c, column in enumerate(columns):
        rows = {row[group]: row for row in found if row["column"] == column and row["f1"] is not None}
        places = [g + (c - len(columns) / 2 + 0.5) * width for g, name in enumerate(groups) if name in rows]
        means = [rows[name]["f1"] for name in groups if name in rows]
        spread = [rows[name]["f1_deviation"] or 0.0 for name in groups if name in rows]
        axes.errorbar(places, means, yerr=spread, fmt="o", markersize=4, capsize=2, label=column)
        printed = [rows[name]["printed_f1"] for name in groups if name in rows]
        marks = [(x, y) for x, y in zip(places, printed, strict=True) if y is not None]
        if marks:
            axes.plot(*zip(*marks, strict=True), "kx", markersize=5)
    axes.set_xticks(range(len(groups)), groups)
    axes.set_ylabel("F-1")
    axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize=7, ncols=2, title="crosses: as printed in the paper", title_fontsize=7)
    _save(figure, path)


def line_plots(
    panels: dict[str, dict[str, tuple[list[float], list[float]]]],
    *,
    x_label: str | dict[str, str],
    y_label: str,
    path: Path,
    log_x: bool = True,
    log_y: bool = False,
    across: int = 4,
) -> None:
    """A panel for each title, a line for each name: (x, y)."""
    rows = -(-len(panels) // across)
    figure, grid = plt.subplots(rows, across, figsize=(3.3 * across, 2.7 * rows), squeeze=False)
    for axes, (title, lines) in zip(grid.flat, panels.items(), strict=False):
        for name, (x, y) in lines.items():
            axes.plot(x, y, marker="o", markersize=3, linewidth=1, label=name)
        axes.set_title(title, fontsize=8)
        axes.set_xscale("log" if log_x else "linear")
        axes.set_yscale("log" if log_y else "linear")
        axes.set_xlabel(x_label if isinstance(x_label, str) else x_label[title], fontsize=7)
        axes.set_ylabel(y_label, fontsize=7)
        axes.tick_params(labelsize=6)
        axes.grid(alpha=0.3)
    for axes in list(grid.flat)[len(panels) :]:
        axes.remove()
    grid.flat[0].legend(fontsize=6)
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)
