"""What a calibration says of itself, as rows of a table: what is covered, of whom, from how many held-out rows."""

from __future__ import annotations

from models.conformal.coverage import rows_needed
from services.contracts.evaluation.calibration import NOVELTY, CalibrationFacts
from services.reporting.html import figure


def calibration_rows(found: CalibrationFacts | None, unit: str | None) -> list[tuple[str, str]]:
    """Names and values for a page; ``unit`` is that of the target, None for classes. Nothing for a version without."""
    if found is None:
        return []
    what = "sets of classes" if found.kind == "sets" else "conformal intervals"
    if not found.available:
        return [(what, f"none: {found.note}"), *_unlike(found)]
    where = "at every plant or cohort that counted" if found.over == "every group" else "over the mixture of the plants"
    shift = f", also {figure(found.shift)} away in total variation" if found.shift else ""
    lacking = f"; {found.missing} plants counted nothing" if found.missing else ""
    rows = [
        (what, f"coverage {figure(found.coverage)} {where}{shift}: on the average over all measurements, not for one"),
        ("from held-out rows", f"{found.n_test} of {found.groups} groups{lacking}"),
        ("largest coverage that they are good for", figure(found.most_coverage)),
    ]
    if found.half_width is not None:
        rows.append(("half width of the conformal interval", f"{figure(found.half_width)} {unit or ''}".strip()))
    if found.widths is not None:
        widths = ", ".join(map(figure, found.widths))
        rows.append(("width of the conformal interval, by tenth of the range", f"{widths} {unit or ''}".strip()))
    if found.scale is not None:
        rows.append(("scale of the probabilities", figure(found.scale)))
    return [*rows, *_unlike(found)]


def _unlike(found: CalibrationFacts) -> list[tuple[str, str]]:
    """Whether answers say of a measurement that it is unlike the held-out ones: where not, silence is no word."""
    if found.tells_unlike is None:
        return []
    told = f"told, of at most {100 * NOVELTY:g} in 100 of those like them"
    needed = rows_needed(1.0 - NOVELTY / 2.0)
    return [(
        "measurements unlike the held-out ones",
        told if found.tells_unlike else f"never told: it takes {needed} held-out rows a plant, on their average",
    )]
