"""An asset type drafted from a table of measurements, for an engineer to edit."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import ValidationError

from api.asset_types.headers import is_found_at_plants, meant_header, plain_name, refuse_alike, without_unit
from api.asset_types.table import Layout, first_text, likely_no_sensor, numbers, read_table
from models.basics import FloatArray
from models.features.likely_range import likely_range, range_for_classes
from services.contracts.errors import InvalidInputError
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.machines.likely_scale import likely_log_range, speaks_for_logarithms
from services.contracts.machines.target import Target
from services.contracts.reading import explain
from services.contracts.toml_text import quoted

HEALTHY = ("healthy", "normal", "good", "ok", "none", "no_fault", "class_0")
"""Words for the healthy class; where none of them is there it is the most frequent one."""

_MOST_CLASSES = 20  # more are likely a number or a name that is in the wrong column
_LEAST_WIDTH = 1e-300
"""Of a range whose ends are rounded: a hundredth of a smaller one has few digits, or is 0."""


@dataclass(frozen=True)
class DraftedType:
    """The asset type, and what of the table an engineer should look at, a line each."""

    asset_type: AssetType
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class _Column:
    """A sensor's column as a feature, and what to say of its readings."""

    header: str
    feature: Feature
    remarks: tuple[str, ...]


def draft_asset_type(name: str, path: Path, layout: Layout) -> DraftedType:
    """An asset type whose sensor ranges hold the readings of a CSV file with a header, without likely mistakes.

    Ends are rounded outwards to a hundredth of the range, or to three digits. A unit is read from a header such as
    ``pressure [bar]``, a scale of logarithms from how the readings spread
    (``services.contracts.machines.likely_scale``) where there is a target: classes gained nothing by it (decision 77).

    Raises
    ------
    InvalidInputError
        The file is no such table, a named column is not in it, or it has no column of numbers or nothing to learn.
    """
    try:
        return _drafted(name, path, layout)
    except ValidationError as error:
        raise InvalidInputError(f"asset type {name} from {path.name}: {explain(error)}") from None


def _drafted(name: str, path: Path, layout: Layout) -> DraftedType:
    """The draft; ``ValidationError`` where a column makes no feature or target, or all together no asset type."""
    table = read_table(path, layout)
    if layout.label is not None and layout.label not in table:
        raise InvalidInputError(
            f"{path.name} has no column {layout.label!r}; it has {', '.join(table)}: say by --label which has the "
            "fault classes, or by --target which has a number to be estimated"
        )
    goal = None if layout.target is None else meant_header(layout.target, table, path.name)
    others = (layout.label, goal, *(meant_header(each, table, path.name) for each in layout.without))
    remarks, sensors = list[str](), list[_Column]()
    for header, cells in table.items():
        if header in others:
            continue
        if not header:
            remarks.append("a column without a header is no feature")
            continue
        readings = numbers(cells, layout.decimal)
        if readings is None:
            remarks.append(f"{header}: not all of its cells are numbers{_why(cells, layout)}, so it is no feature")
            continue
        if why := likely_no_sensor(cells, readings):
            remarks.append(f"{header}: {why}; if it is no sensor, leave it out by --without {shlex.quote(header)}")
        sensors.append(_sensor(header, readings, is_for_target=goal is not None))
    if not sensors:
        first = f": {remarks[0]}" if remarks else ""
        raise InvalidInputError(f"{path.name} has no column of numbers that could be a feature{first}")
    said = [(each.header, without_unit(each.header)[0]) for each in sensors]
    refuse_alike(said, path.name, "rename one, or leave one out by --without")
    remarks += [line for each in sensors for line in each.remarks]
    words = [] if layout.label is None else table[layout.label]
    classes = _classes(words, remarks) if layout.label is not None else ()
    values = None if goal is None else numbers(table[goal], layout.decimal)
    if goal is None and (empty := words.count("")):
        remarks.append(f"{layout.label}: {empty} of {len(words)} cells are empty; a plant refuses a table with such "
                       "cells, so leave out these rows there")
    target = None if goal is None else _target(goal, values, words, remarks)
    made = AssetType(name=name, features=tuple(each.feature for each in sensors), fault_classes=classes, target=target)
    return DraftedType(made, tuple(remarks))


def _why(cells: list[str], layout: Layout) -> str:
    """The first cell of a column that is no number, and whether all were with the other decimal mark."""
    row = first_text(cells, layout.decimal)
    if row is None:
        return ""
    other = "," if layout.decimal == "." else "."
    hint = f"; with --decimal {other} they were" if numbers(cells, other) is not None else ""
    return f" (row {row + 1} holds {cells[row][:20]!r}{hint})"


def _sensor(header: str, readings: FloatArray, *, is_for_target: bool) -> _Column:
    said, unit = without_unit(header)
    name, remarks = plain_name(said), list[str]()
    infinite, empty = int(np.isinf(readings).sum()), int(np.isnan(readings).sum())
    readings = np.where(np.isinf(readings), np.nan, readings)
    if not is_found_at_plants(header, name, unit):
        remarks.append(f'{name}: its column is called {header!r}; where a plant calls it so too, its site.toml says '
                       f"{name} = {quoted(header)} under [data.columns]")
    spreads = speaks_for_logarithms(readings)
    by_log = spreads and is_for_target
    low, high = _range(name, readings, remarks, by_log=by_log, is_for_target=is_for_target)
    if low == high:
        remarks.append(f"{name}: reads {low:g} in every row")
        high = low + 1.0 if low + 1.0 > low else low + abs(low)
    if by_log:
        remarks.append(
            f'{name}: its readings spread over decades, so equal ratios are equal steps (scale = "log"); take "linear" '
            "where differences count"
        )
    elif spreads:
        remarks.append(f'{name}: its readings spread over decades; scale = "log" makes equal ratios equal steps')
    low, high = _outwards_by_log(low, high) if by_log else _outwards(low, high)
    remarks += [
        f"{name}: {count} of {readings.size} cells are {what}; a plant refuses a table with such cells, so leave out "
        "these rows there, or the sensor here"
        for count, what in ((empty, "empty"), (infinite, "infinite")) if count
    ]
    scale: Literal["linear", "log"] = "log" if by_log else "linear"
    return _Column(header, Feature(name=name, unit=unit, low=low, high=high, scale=scale), tuple(remarks))


def _range(
    name: str, readings: FloatArray, remarks: list[str], *, by_log: bool, is_for_target: bool
) -> tuple[float, float]:
    """Ends of the range, with remarks on the readings that it leaves out."""
    low, high = likely_log_range(readings) if by_log else likely_range(readings)
    total, mistakes = np.isfinite(readings).sum(), _beyond(readings, low, high)
    if mistakes.size:
        farthest = mistakes[np.abs(mistakes - (low + high) / 2).argmax()]
        remarks.append(
            f"{name}: {mistakes.size} of {total} readings are far from all others and likely mistakes, the farthest "
            f"{farthest:g}: they are cut to the range"
        )
    if is_for_target:
        return low, high
    first, last = range_for_classes(readings)
    if tails := _beyond(readings, first, last).size - mistakes.size:
        remarks.append(
            f"{name}: {tails} of {total} readings are in its long tails, which end at {low:g} and {high:g}: they are "
            "cut to the range, so that the others are told apart; widen it where how far out they lie counts"
        )
    return first, last


def _beyond(readings: FloatArray, low: float, high: float) -> FloatArray:
    return readings[(readings < low) | (readings > high)]


def _outwards(low: float, high: float) -> tuple[float, float]:
    """The ends on a grid of a hundredth of the width, a power of ten, none of them inwards.

    As they are where the width is next to nothing, or none that a float64 has: the contract refuses these.
    """
    if not _LEAST_WIDTH < high - low < math.inf:
        return low, high
    digits = 2 - math.floor(math.log10(high - low))
    step = 10.0 ** -digits
    return round(math.floor(low / step) * step, max(digits, 0)), round(math.ceil(high / step) * step, max(digits, 0))


def _outwards_by_log(low: float, high: float) -> tuple[float, float]:
    """The ends, above 0, to three digits, none of them inwards; as it is one so small that it has few digits."""
    found = []
    for end, rounded in ((low, math.floor), (high, math.ceil)):
        if end < _LEAST_WIDTH:
            found.append(end)
            continue
        digits = 2 - math.floor(math.log10(end))
        found.append(round(rounded(end * 10.0**digits) / 10.0**digits, max(digits, 0)))
    return found[0], found[1]


def _classes(cells: list[str], remarks: list[str]) -> tuple[FaultClass, ...]:
    counts = Counter(cell for cell in cells if cell)
    if not 2 <= len(counts) <= _MOST_CLASSES:
        raise InvalidInputError(
            f"the label column has {len(counts)} different words; a draft takes two to {_MOST_CLASSES} for fault "
            "classes (a number that is to be estimated is a target: say --target; more classes than these, which an "
            "asset type may have, are written by hand)"
        )
    refuse_alike([(word, word) for word in counts], "the label column", "write the words of one class alike", "class_")
    names = {word: plain_name(word, "class_") for word in counts}
    healthy = next(
        (word for said in HEALTHY for word in counts if names[word] == said), counts.most_common(1)[0][0]
    )
    remarks.append(f"{names[healthy]} is taken for the healthy class, severity 0; all others have severity 1")
    remarks += [
        f"{name}: its word is {word!r}; where that is a plant's word too, its site.toml says {quoted(word)} = "
        f'"{name}" under [data.labels]'
        for word, name in names.items() if word != name
    ]
    order = [healthy, *sorted(word for word in counts if word != healthy)]
    return tuple(FaultClass(name=names[word], severity=int(word != healthy)) for word in order)


def _target(header: str, values: FloatArray | None, words: list[str], remarks: list[str]) -> Target:
    if values is None:
        raise InvalidInputError(f"column {header!r} holds what is no number, so it is no target")
    rows, where = np.array([not word for word in words]) if words else True, " in rows without a class" if words else ""
    if empty := int((np.isnan(values) & rows).sum()):
        remarks.append(f"{header}: {empty} of {values.size} cells are empty{where}; a plant refuses a table with such "
                       "rows, so leave them out there")
    said, unit = without_unit(header)
    name = plain_name(said)
    if not is_found_at_plants(header, name, unit):
        remarks.append(f'{name}: its column is called {header!r}; where a plant calls it so too, its site.toml says '
                       f"target_column = {quoted(header)} under [data]")
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if low == high:
        raise InvalidInputError(f"column {header!r} reads {low:g} in every row, so there is nothing to estimate")
    low, high = _outwards(low, high)
    return Target(name=name, unit=unit, low=low, high=high)
