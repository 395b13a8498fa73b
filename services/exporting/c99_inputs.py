"""C99 of what the planes see: scaled features x as they are, lifted, or through a network's hidden units, to z."""

from __future__ import annotations

from models.basics import FloatArray
from models.features.fourier import FourierLift
from models.features.nystrom import NystromLift
from models.features.products import ProductLift
from models.features.spline import SplineLift
from services.exporting.c99_text import C99Writer
from services.exporting.plain_model import PlainModel

Lines = tuple[list[str], list[str]]


def inputs(model: PlainModel, write: C99Writer) -> Lines:
    """Constants, and the lines that make z of x; these have ``int i, k`` and write to ``z``."""
    lift = model.lift
    copy = f"    for (i = 0; i < {write.upper}_FEATURES; ++i) z[i] = x[i];"
    if model.hidden is not None:
        return _hidden(*model.hidden, write)
    if lift is None:
        return [], [copy]
    if isinstance(lift, SplineLift):
        return _spline(lift, write)
    if isinstance(lift, ProductLift):
        return _products(lift, write, copy)
    start = f"{write.upper}_FEATURES + " if lift.keep_linear else ""
    linear = [copy] if lift.keep_linear else []
    return _fourier(lift, write, linear, start) if isinstance(lift, FourierLift) else _nystrom(
        lift, write, linear, start
    )


def _hidden(inner: FloatArray, bias: FloatArray, write: C99Writer) -> Lines:
    """``z = max(U x + b, 0)``; a NaN stays one, so that no class is told where a required feature is missing."""
    name, kind, nothing = write.name, write.kind, write.number(0.0)
    return [write.numbers("unit_slopes", inner), write.numbers("unit_offsets", bias)], [
        f"    for (k = 0; k < {len(bias)}; ++k) {{",
        f"        {kind} sum = {nothing};",
        f"        for (i = 0; i < {write.upper}_FEATURES; ++i)",
        f"            sum += {name}_unit_slopes[k * {write.upper}_FEATURES + i] * x[i];",
        f"        sum += {name}_unit_offsets[k];",
        f"        z[k] = sum < {nothing} ? {nothing} : sum;",
        "    }",
    ]


def _spline(lift: SplineLift, write: C99Writer) -> Lines:
    s, name, kind = lift.segments, write.name, write.kind
    return [write.numbers("knots", lift.knots)], [
        f"    for (i = 0; i < {write.upper}_FEATURES; ++i)",
        f"        for (k = 0; k < {s}; ++k) {{",
        f"            const {kind} left = {name}_knots[i * {s + 1} + k];",
        f"            const {kind} right = {name}_knots[i * {s + 1} + k + 1];",
        "            const " + kind + " at = x[i] < left ? left : (x[i] > right ? right : x[i]);",
        f"            z[i * {s} + k] = at - left;",
        "        }",
    ]


def _products(lift: ProductLift, write: C99Writer, copy: str) -> Lines:
    """Products of pairs, behind the features or their ramps."""
    name, half = write.name, write.number(0.5)
    pairs = [number for pair in lift.pairs for number in pair]
    constants, alone = ([], [copy]) if lift.spline is None else _spline(lift.spline, write)
    start = f"{write.upper}_FEATURES" + ("" if lift.spline is None else f" * {lift.segments}")
    return [*constants, write.integers("pairs", pairs)], [
        *alone,
        f"    for (k = 0; k < {len(lift.pairs)}; ++k)",
        f"        z[{start} + k] = {half} + {write.number(2.0)} * (x[{name}_pairs[2 * k]] - {half})",
        f"            * (x[{name}_pairs[2 * k + 1]] - {half});",
    ]


def _fourier(lift: FourierLift, write: C99Writer, linear: list[str], start: str) -> Lines:
    name, upper, half = write.name, write.upper, write.number(0.5)
    return [write.numbers("frequencies", lift.frequencies), write.numbers("phases", lift.phases)], [
        *linear,
        f"    for (k = 0; k < {len(lift.phases)}; ++k) {{",
        f"        {write.kind} angle = {write.number(0.0)};",
        f"        for (i = 0; i < {upper}_FEATURES; ++i)",
        f"            angle += (x[i] - {half}) * {name}_frequencies[k * {upper}_FEATURES + i];",
        f"        z[{start}k] = {half} + {half} * cos{write.end}(angle + {name}_phases[k]);",
        "    }",
    ]


def _nystrom(lift: NystromLift, write: C99Writer, linear: list[str], start: str) -> Lines:
    name, upper, kind, n = write.name, write.upper, write.kind, len(lift.points)
    half, nothing, one = write.number(0.5), write.number(0.0), write.number(1.0)
    return [write.numbers("points", lift.points), write.numbers("whitening", lift.whitening)], [
        *linear,
        "    {",
        f"        {kind} bumps[{n}];",
        f"        for (k = 0; k < {n}; ++k) {{",
        f"            {kind} square = {nothing};",
        f"            for (i = 0; i < {upper}_FEATURES; ++i) {{",
        f"                const {kind} away = x[i] - {name}_points[k * {upper}_FEATURES + i];",
        "                square += away * away;",
        "            }",
        f"            bumps[k] = exp{write.end}({write.number(-0.5)} * square / {write.number(lift.bandwidth**2)});",
        "        }",
        f"        for (k = 0; k < {n}; ++k) {{",
        f"            {kind} at = {nothing};",
        f"            for (i = 0; i < {n}; ++i) at += bumps[i] * {name}_whitening[i * {n} + k];",
        f"            at = {half} + {half} * at;",
        f"            z[{start}k] = at < {nothing} ? {nothing} : (at > {one} ? {one} : at);",
        "        }",
        "    }",
    ]
