"""Public tables whose original is a raw file without our header: where each is, and how it becomes our CSV.

The files are those of the original publishers (UCI's archive; the authors' repository for the penguins). A table is
kept only when the SHA-256 of its canonical text (every number in Python's shortest spelling, without the header) is the
known one, so what a server adds or leaves out is found.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_MISSING = ("", "?", "NA", "nan", "NaN")


@dataclass(frozen=True)
class RawTable:
    """A raw file: its address, our feature names in the file's order, and where its target and other columns stand.

    ``features`` and ``target`` are places (from 0) in a line; ``flags`` are names of 0/1 columns after the features of
    which one is 1 and is the class (then ``target`` is not used). ``delimiter`` None: any white space. ``skip`` lines
    of header are left out.
    """

    url: str
    doi: str
    names: tuple[str, ...]
    features: tuple[int, ...]
    target: int
    sha256: str
    delimiter: str | None = ","
    skip: int = 0
    flags: tuple[str, ...] = ()


def _span(first: int, last: int) -> tuple[int, ...]:
    return tuple(range(first, last + 1))


_ABALONE = "sex length diameter height whole_weight shucked_weight viscera_weight shell_weight"
_ADULT = (
    "age workclass fnlwgt education education_num marital_status occupation relationship race sex capital_gain "
    "capital_loss hours_per_week native_country"
)
_AI4I = "type air_temperature_k process_temperature_k rotational_speed_rpm torque_nm tool_wear_min"
_CANCER = (
    "clump_thickness uniformity_of_cell_size uniformity_of_cell_shape marginal_adhesion single_epithelial_cell_size "
    "bare_nuclei bland_chromatin normal_nucleoli mitoses"
)
_HEART = (
    "age sex chest_pain_type resting_blood_pressure serum_cholesterol fasting_blood_sugar resting_ecg max_heart_rate "
    "exercise_induced_angina oldpeak st_slope major_vessels thal"
)
_PENGUINS = "island bill_length_mm bill_depth_mm flipper_length_mm body_mass_g sex year"
_STEEL = (
    "x_minimum x_maximum y_minimum y_maximum pixels_areas x_perimeter y_perimeter sum_of_luminosity "
    "minimum_of_luminosity maximum_of_luminosity length_of_conveyer type_of_steel_a300 type_of_steel_a400 "
    "steel_plate_thickness edges_index empty_index square_index outside_x_index edges_x_index edges_y_index "
    "outside_global_index log_of_areas log_x_index log_y_index orientation_index luminosity_index sigmoid_of_areas"
)
_FAULTS = ("Pastry", "Z_Scratch", "K_Scatch", "Stains", "Dirtiness", "Bumps", "Other_Faults")

RAW_TABLES: Mapping[str, RawTable] = {
    "abalone": RawTable(
        f"{_UCI}/abalone/abalone.data", "10.24432/C55C7W", tuple(_ABALONE.split()), _span(0, 7), 8,
        "de37cdcdcaaa50c309d514f248f7c2302a5f1f88c168905eba23fe2fbc78449f",
    ),
    "adult": RawTable(
        f"{_UCI}/adult/adult.data", "10.24432/C5XW20", tuple(_ADULT.split()), _span(0, 13), 14,
        "6759a115aa91ae7bb69aa04ec3d87e8391b4565da169db49d15f92ac98893600",
    ),
    "ai4i2020": RawTable(
        f"{_UCI}/00601/ai4i2020.csv", "10.24432/C5HS5C", tuple(_AI4I.split()), _span(2, 7), 8,
        "761f095b7cb0a37285da00370e9e89a9c3f95293f16311676e04050d4eab95e0", skip=1
    ),
    "breast_cancer_wisconsin_original": RawTable(
        f"{_UCI}/breast-cancer-wisconsin/breast-cancer-wisconsin.data", "10.24432/C5HP4Z", tuple(_CANCER.split()),
        _span(1, 9), 10,
        "95e9cbae6b954a3bad3056a9bcc1eb1413fbb7ebdf0a260679a74648c454c6cf",
    ),
    "palmer_penguins": RawTable(
        "https://raw.githubusercontent.com/allisonhorst/palmerpenguins/main/inst/extdata/penguins.csv",
        "10.5281/zenodo.3960218", tuple(_PENGUINS.split()), _span(1, 7), 0,
        "2e71620ea8c3ad0319e41852643d6a5497207fe1c5117b40fc3f762f859b5a82", skip=1,
    ),
    "statlog_heart": RawTable(
        f"{_UCI}/statlog/heart/heart.dat", "10.24432/C57303", tuple(_HEART.split()), _span(0, 12), 13,
        "e0a535e160351ae286ccfe7c7cbf124d5b8d2b9336746c3b5591fe35daf8b087",
        delimiter=None,
    ),
    "steel_plates_faults": RawTable(
        f"{_UCI}/00198/Faults.NNA", "10.24432/C5J88N", tuple(_STEEL.split()), _span(0, 26), -1,
        "e9503fd433363021371ea466fc530aa0277d980163404fe2b2a5fc0d625e3348",
        delimiter=None, flags=_FAULTS,
    ),
}


def converted(text: str, table: RawTable) -> list[list[str]]:
    """Rows (features, then label) of a raw text, numbers in one spelling; ``ValueError`` for a line of another form."""
    if table.delimiter is None:
        lines = [line.split() for line in text.splitlines()]
    else:
        lines = list(csv.reader(io.StringIO(text), delimiter=table.delimiter))
    rows = []
    needed = max((*table.features, table.target)) + len(table.flags)
    for number, line in enumerate(lines[table.skip :], start=table.skip + 1):
        if not "".join(line).strip():
            continue
        if len(line) <= needed:
            raise ValueError(f"line {number} has {len(line)} cells, at least {needed + 1} were expected")
        rows.append([*(spelling(line[i]) for i in table.features), _label(line, number, table)])
    return rows


def spelling(cell: str) -> str:
    """A cell with its number, if it is one, as Python's shortest spelling; empty for what is missing."""
    cell = cell.strip()
    if cell in _MISSING:
        return ""
    try:
        value = float(cell)
    except ValueError:
        return cell
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def lines_of(rows: Sequence[Sequence[str]]) -> str:
    """Rows as CSV lines."""
    return "".join(",".join(row) + "\n" for row in rows)


def checksum(rows: Sequence[Sequence[str]]) -> str:
    """SHA-256 of the rows as CSV lines, in hexadecimal."""
    return hashlib.sha256(lines_of(rows).encode()).hexdigest()


def _label(line: Sequence[str], number: int, table: RawTable) -> str:
    if not table.flags:
        return spelling(line[table.target])
    first = len(table.features)
    marked = [name for name, flag in zip(table.flags, line[first:], strict=False) if float(flag) == 1.0]
    if len(marked) != 1:
        raise ValueError(f"line {number} belongs to {len(marked)} classes, one was expected")
    return marked[0]
