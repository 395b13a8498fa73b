"""Figure 3 of the paper on relative fairness: R_{A,B} of the exact solutions over phi, on the penguins.

    python -m tests.benchmarks.papers.relative_fairness.figure3 [--quick] [--json FILE] [--out DIR]

Three sets Theta: the paper's grid of 10^9 points, gone through without leaving any out unproven; the box around it; and
all weights. In the last two the solution comes with a proof, ``gap`` of the objective. ``--quick`` leaves out the grid.
Theorem 1 holds for every Theta: R never rises with phi.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from models.fairness.indices import relative_unfairness
from models.fairness.quadratic import FairSolution, solve_relative
from tests.benchmarks.papers.fdr_svm.command import markdown, write_csv, write_json
from tests.benchmarks.papers.fdr_svm.plots import line_plots
from tests.benchmarks.papers.relative_fairness.penguins import BOX, PHIS, SPECIES, ambiguity, losses, solve_on_grid

SHARE = 1 / len(SPECIES)


def solutions(*, grid: bool) -> list[dict[str, Any]]:
    """A row for each Theta and phi: the solution, the clients' losses, R, the objective and its proven gap."""
    quadratics = losses()
    found = []
    for phi in PHIS:
        boxed = solve_relative(quadratics, ambiguity(phi), box=BOX)
        solved: dict[str, FairSolution] = {"box": boxed, "all": solve_relative(quadratics, ambiguity(phi))}
        for space, solution in solved.items():
            found.append(_row(space, phi, solution.point, solution.losses, (1 - phi) * solution.gap))
        if grid:
            point = solve_on_grid(quadratics, phi, boxed.point)
            found.append(_row("grid", phi, point, quadratics.values(point), 0.0))
    return found


def _row(space: str, phi: float, point: Any, values: Any, gap: float) -> dict[str, Any]:
    return {
        "theta": space, "phi": phi, **{f"theta_{k + 1}": float(value) for k, value in enumerate(point)},
        **{name: float(value) for name, value in zip(SPECIES, values, strict=True)},
        "relative_unfairness": relative_unfairness(values, SHARE, SHARE),
        "objective": float(values.max() - phi * values.min()), "gap": gap,
    }


def main() -> int:
    """Solve, write, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="leave out the grid of 10^9 points")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows as JSON, too")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", default=Path("benchmark-results") / "relative_fairness" / "figure3",
        help="folder of the CSV, the plot and the table (default %(default)s)",
    )
    args = parser.parse_args()
    found = solutions(grid=not args.quick)
    args.out.mkdir(parents=True, exist_ok=True)
    write_csv(args.out / "figure3.csv", found)
    write_json(args.json, found)
    titles = {"grid": "the paper's grid", "box": "the box around it", "all": "all weights"}
    curves, lines = {}, []
    for space, title in titles.items():
        own = [row for row in found if row["theta"] == space]
        if own:
            curves[title] = ([row["phi"] for row in own], [row["relative_unfairness"] for row in own])
            lines.append([title, *(f"{row['relative_unfairness']:.4f}" for row in own)])
    line_plots(
        {"penguins": curves}, x_label="phi", y_label="relative unfairness", path=args.out / "figure3.png", log_x=False,
        across=1,
    )
    text = markdown(["Theta", *(f"phi = {phi:g}" for phi in PHIS)], lines)
    (args.out / "figure3.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
