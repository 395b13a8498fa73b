"""Lorenz curves of the sites' losses as SVG or PNG, told apart by line style and mark: readable in black and white."""

from __future__ import annotations

import io
import re
from typing import Literal

from services.contracts.evaluation.fairness import BASIS_NAMES, FairnessIndices, FairnessReport

Format = Literal["svg", "png"]
STYLES = {
    ("loss", False): ("-", "o"), ("worst_case_risk", False): ("--", "s"),
    ("loss", True): (":", "^"), ("worst_case_risk", True): ("-.", "v"),
}
"""Line style and mark by basis, and whether it is the champion's."""

MARKS = 24
"""Of a line at most: those of hundreds of plants would hide it."""


def lorenz_chart(report: FairnessReport, form: Format) -> bytes:
    """Picture of the Lorenz curves of this version and the champion, beside the line of equality; and transformed."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "lorenz", "font.size": 10}):
        figure = Figure(figsize=(10.4, 4.8), dpi=120)
        figure.subplots_adjust(left=0.065, right=0.985, bottom=0.11, top=0.92, wspace=0.2)
        axes, beside = figure.subplots(1, 2)
        axes.plot([0, 1], [0, 1], color="black", linewidth=0.8, label="equality")
        beside.plot([0, 1], [0, 0.5], color="black", linewidth=0.8)
        for indices in report.indices:
            _draw(axes, beside, indices, f"{BASIS_NAMES[indices.basis]}, Gini {indices.gini:.3f}", champion=False)
        for indices in report.champion_indices:
            label = f"{BASIS_NAMES[indices.basis]} of the champion, Gini {indices.gini:.3f}"
            _draw(axes, beside, indices, label, champion=True)
        axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="share of the sites, best first", ylabel="share of all loss")
        axes.set_title(f"{report.name}, version {report.version}" if report.version else report.name)
        height = "share of all loss, less half that of the sites"
        beside.set(xlim=(0, 1), xlabel="share of the sites, best first", ylabel=height)
        beside.set_title("transformed")
        for each in (axes, beside):
            each.grid(color="0.85", linewidth=0.6)
        axes.legend(loc="upper left", frameon=True)
        written = io.BytesIO()
        metadata = {"Date": None} if form == "svg" else {"Software": None}
        figure.savefig(written, format=form, metadata=metadata)
    return _without_styles(written.getvalue().decode()).encode() if form == "svg" else written.getvalue()


def _without_styles(svg: str) -> str:
    """SVG whose looks are attributes: a strict content security policy lets no style in a drawing count."""
    plain = re.sub(r"<style[^>]*>.*?</style>", "", svg, flags=re.S)
    plain = re.sub(r' style="([^"]*)"', lambda found: _attributes(found[1]), plain)
    return plain.replace("<svg ", '<svg stroke-linejoin="round" stroke-linecap="butt" ', 1)


def _attributes(style: str) -> str:
    told = dict(part.split(":", 1) for part in style.split(";") if ":" in part)
    font = re.fullmatch(r"\s*([\d.]+px) (.+)", told.pop(" font", told.pop("font", "")))
    if font:  # the short form is for style sheets alone
        told |= {"font-size": font[1], "font-family": font[2]}
    return "".join(f' {name.strip()}="{value.strip()}"' for name, value in told.items())


def _draw(axes: object, beside: object, indices: FairnessIndices, label: str, *, champion: bool) -> None:
    line, mark = STYLES[indices.basis, champion]
    across = [point.sites for point in indices.lorenz]
    up = [point.losses for point in indices.lorenz]
    for where, heights in ((axes, up), (beside, [y - x / 2 for x, y in zip(across, up, strict=True)])):
        where.plot(  # type: ignore[attr-defined]  # matplotlib has no types here
            across, heights, color="0.45" if champion else "black", linestyle=line, marker=mark, markersize=4,
            markerfacecolor="white", markevery=-(-len(across) // MARKS), label=label,
        )
