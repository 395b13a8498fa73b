"""Table 2: F-1 and mean correct classification rate on the simulated pump in five settings.

``python -m tests.benchmarks.papers.fdr_svm.table2 [--quick] [--json FILE] [--out DIR]``

Full: 10 repetitions over the paper's grids (220 rounds; rho or gamma, kappa and beta by 5-fold cross-validation).
Quick: 2 repetitions; the columns as printed are judged on 2 of the 5 folds, run for 60 rounds (SM 140), with rho 1e-3
or 1e-1, beta 10 and kappa 0.5. The paper's pump is another
simulation: its printed values are for orientation, not a comparison.
"""

from __future__ import annotations

from tests.benchmarks.papers.fdr_svm import command  # first: it keeps the BLAS to one thread

# isort: split
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.command import at_least
from tests.benchmarks.papers.fdr_svm.catalogue import COLUMNS, printed_name
from tests.benchmarks.papers.fdr_svm.cells import Job, Row, run_cells
from tests.benchmarks.papers.fdr_svm.choice import Cell, Grid, quick
from tests.benchmarks.papers.fdr_svm.plots import table_plot
from tests.benchmarks.papers.fdr_svm.printed import PRINTED_TABLE_2
from tests.benchmarks.papers.fdr_svm.pump import SETTINGS, pump_split

GRID = Grid((220,), (220,), (1e-3, 1e-2, 1e-1), (1e1, 1e2, 1e3), (0.1, 0.5, 1.0), (10.0, 100.0))


def run_cell(setting: str, column: str, repetition: int, fast: bool, cache: Path) -> Cell:
    """One cell: a column on a repetition of a setting."""
    grid = replace(quick(GRID), rhos=(1e-3, 1e-1), flip_costs=(0.5,), betas=(10.0,)) if fast else GRID
    return COLUMNS[column](pump_split(setting, repetition, cache), grid)


def jobs(
    fast: bool, columns: list[str], cache: Path, settings: list[str] | None = None, repetitions: int | None = None
) -> list[Job]:
    """Cells of the table, a repetition after the other; None: all settings, as many repetitions as the run has."""
    found = []
    for r in range(repetitions or (2 if fast else 10)):
        for setting in settings or SETTINGS:
            for column in columns:
                key = (("setting", setting), ("column", column), ("repetition", str(r)), ("seed", str(r)))
                found.append(Job(key, run_cell, (setting, column, r, fast, cache)))
    return found


def summary(rows: list[Row]) -> list[dict[str, Any]]:
    """Rows of the result: one for each setting and column."""
    found = []
    for s, setting in enumerate(SETTINGS):
        for column in COLUMNS:
            own = [row for row in rows if row["setting"] == setting and row["column"] == column]
            if not own:
                continue
            printed = PRINTED_TABLE_2.get(printed_name(column), (None,) * 5)[s]
            f1, rate = [row["f1"] for row in own], [row["correct_rate"] for row in own]
            found.append(
                {
                    "setting": setting,
                    "column": column,
                    "repetitions": len(own),
                    "f1": float(np.mean(f1)) if own else None,
                    "f1_deviation": float(np.std(f1, ddof=1)) if len(own) > 1 else None,
                    "mccr": float(np.mean(rate)) if own else None,
                    "mccr_deviation": float(np.std(rate, ddof=1)) if len(own) > 1 else None,
                    "printed_f1": printed[0] if printed else None,
                    "printed_deviation": printed[1] if printed else None,
                    "largest_gap": max((row["gap"] for row in own), default=None),
                    "seconds": float(np.mean([row["seconds"] for row in own])) if own else None,
                }
            )
    return found


def table(found: list[dict[str, Any]]) -> str:
    """Markdown: F-1 with the printed values below, then the rates."""
    by = {(row["column"], row["setting"]): row for row in found}
    lines, rates = [], []
    for column in COLUMNS:
        cells = [by.get((column, setting), {}) for setting in SETTINGS]
        if not any(cells):
            continue
        lines.append([column, "measured", *[_pair(c.get("f1"), c.get("f1_deviation")) for c in cells]])
        if any(c.get("printed_f1") for c in cells):
            printed = [_pair(c.get("printed_f1"), c.get("printed_deviation")) for c in cells]
            lines.append([column, "printed (another pump)", *printed])
        rates.append([column, *[_pair(c.get("mccr"), c.get("mccr_deviation")) for c in cells]])
    text = "F-1 of the leak, mean and deviation.\n\n" + command.markdown(["column", "", *SETTINGS], lines)
    return text + "\nMean correct classification rate:\n\n" + command.markdown(["column", *SETTINGS], rates)


def _pair(mean: float | None, deviation: float | None) -> str:
    return "" if mean is None else f"{mean:.3f}" + (f" ± {deviation:.3f}" if deviation is not None else "")


def main() -> int:
    """Run, resume, write."""
    parser = command.parser(__doc__, "table2")
    parser.add_argument("--columns", nargs="+", default=list(COLUMNS), choices=list(COLUMNS))
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument(
        "--repetitions", type=at_least(), metavar="N", help="other than 10 (quick: 2) repetitions"
    )
    args = parser.parse_args()
    wanted = jobs(args.quick, args.columns, args.out.parent / "pump", args.settings, args.repetitions)
    rows = run_cells(wanted, command.state_file(args), args.jobs)
    found = summary(rows)
    text = table(found)
    command.write_csv(args.out / "table2.csv", found)
    (args.out / "table2.md").write_text(text, encoding="utf-8")
    command.write_json(args.json, found)
    table_plot(found, list(SETTINGS), "setting", list(COLUMNS), args.out / "table2.png")
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
