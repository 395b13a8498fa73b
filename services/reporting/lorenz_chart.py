"""Lorenz curves of the sites' losses as SVG or PNG, told apart by line style and mark: readable in black and white."""

from __future__ import annotations

import io
from typing import Literal

from services.contracts.fairness import BASIS_NAMES, FairnessIndices, FairnessReport

Format = Literal["svg", "png"]
STYLES = {
    ("loss", False): ("-", "o"), ("worst_case_risk", False): ("--", "s"),
    ("loss", True): (":", "^"), ("worst_case_risk", True): ("-.", "v"),
}
"""Line style and mark by basis, and whether it is the champion's."""


def lorenz_chart(report: FairnessReport, form: Format) -> bytes:
    """Picture of the Lorenz curves of this version and of the champion, beside the line of equality."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "lorenz", "font.size": 10}):
        figure = Figure(figsize=(6.4, 4.8), dpi=120, layout="constrained")
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color="black", linewidth=0.8, label="equality")
        for indices in report.indices:
            _draw(axes, indices, f"{BASIS_NAMES[indices.basis]}, Gini {indices.gini:.3f}", champion=False)
        for indices in report.champion_indices:
            label = f"{BASIS_NAMES[indices.basis]} of the champion, Gini {indices.gini:.3f}"
            _draw(axes, indices, label, champion=True)
        axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="share of the sites, best first", ylabel="share of all loss")
        axes.set_title(f"{report.name}, version {report.version}" if report.version else report.name)
        axes.grid(color="0.85", linewidth=0.6)
        axes.legend(loc="upper left", frameon=True)
        written = io.BytesIO()
        metadata = {"Date": None} if form == "svg" else {"Software": None}
        figure.savefig(written, format=form, metadata=metadata)
    return written.getvalue()


def _draw(axes: object, indices: FairnessIndices, label: str, *, champion: bool) -> None:
    line, mark = STYLES[indices.basis, champion]
    across = [point.sites for point in indices.lorenz]
    up = [point.losses for point in indices.lorenz]
    axes.plot(  # type: ignore[attr-defined]  # matplotlib has no types here
        across, up, color="0.45" if champion else "black", linestyle=line, marker=mark, markersize=4,
        markerfacecolor="white", label=label,
    )
