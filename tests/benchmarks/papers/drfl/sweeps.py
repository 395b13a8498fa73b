"""Figures 2 to 5: accuracy, or mean squared error, against noise in the test set, for DRFL and its four rivals.

``python -m tests.benchmarks.papers.drfl.sweeps [--quick] [--sets NAME ...] [--json FILE] [--out DIR]``

Three clients, noise in the training rows of client 1, hyperparameters by 5-fold cross-validation on the training
clients, three sweeps of noise on the test rows (``tables``, ``methods``, ``tuning`` say how). Full: 10 repetitions,
the paper's grids. Quick: 3 repetitions; of the grids 5 radii, 4 label flip costs and 3 thetas (Abalone: 3, 2, 2).
"""

from __future__ import annotations

from tests.benchmarks.papers.fdr_svm import command  # first: it keeps the BLAS to one thread

# isort: split
import sys
from pathlib import Path

from tests.benchmarks.command import at_least
from tests.benchmarks.data import MissingDataError
from tests.benchmarks.papers.drfl.areas import areas, curve_rows, table
from tests.benchmarks.papers.drfl.methods import METHODS
from tests.benchmarks.papers.drfl.plots import sweep_plot
from tests.benchmarks.papers.drfl.settings import PAPER_GRID, PAPER_HUBER, QUICK_GRID, QUICK_HUBER, Grid
from tests.benchmarks.papers.drfl.tables import SCENARIOS, Scenario
from tests.benchmarks.papers.drfl.tuning import run_cell
from tests.benchmarks.papers.fdr_svm.cells import Job, run_cells


def grid_of(scenario: Scenario, quick: bool) -> Grid:
    """The values that are tried."""
    if scenario.task == "regression":
        return QUICK_HUBER if quick else PAPER_HUBER
    return QUICK_GRID if quick else PAPER_GRID


def jobs(scenarios: list[Scenario], quick: bool, repetitions: int) -> list[Job]:
    """A cell for each scenario, repetition and method, the long ones first."""
    found = []
    for method in METHODS:
        for scenario in scenarios:
            for r in range(repetitions):
                key = (("scenario", scenario.name), ("method", method), ("repetition", str(r)))
                found.append(Job(key, run_cell, (scenario, method, r, grid_of(scenario, quick))))
    return found


def main() -> int:
    """Run, resume, write; 1 where a table of data is missing or DRFL's area under accuracy is below a rival's."""
    parser = command.parser(__doc__, "sweeps")
    parser.set_defaults(out=Path("benchmark-results") / "drfl" / "sweeps")
    names = [scenario.name for scenario in SCENARIOS]
    parser.add_argument(
        "--sets", nargs="+", default=names, choices=names, metavar="NAME", help=f"of {', '.join(names)}"
    )
    parser.add_argument("--repetitions", type=at_least(), metavar="N", help="default 10, quick 3")
    args = parser.parse_args()
    scenarios = [scenario for scenario in SCENARIOS if scenario.name in args.sets]
    repetitions = args.repetitions or (3 if args.quick else 10)
    try:
        rows = run_cells(jobs(scenarios, args.quick, repetitions), command.state_file(args), args.jobs)
    except MissingDataError as missing:
        print(missing, file=sys.stderr)
        return 1
    found, lines = areas(scenarios, rows), curve_rows(scenarios, rows)
    command.write_csv(args.out / "curves.csv", lines)
    command.write_csv(args.out / "areas.csv", found)
    command.write_json(args.json, found)
    for figure in sorted({scenario.figure for scenario in scenarios}):
        sweep_plot([s for s in scenarios if s.figure == figure], lines, args.out / f"figure{figure}.png")
    text = table(scenarios, found, rows)
    (args.out / "areas.md").write_text(text, encoding="utf-8")
    print(text)
    short = [row for row in found if row["task"] == "classification" and row["drfl_at_or_above"] == "no"]
    return 1 if short else 0


if __name__ == "__main__":
    raise SystemExit(main())
