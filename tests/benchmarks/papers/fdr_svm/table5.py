"""Table 5: one-sided Wilcoxon signed-rank tests of the paper's best model against each rival, from the stored cells.

``python -m tests.benchmarks.papers.fdr_svm.table5 [--json FILE] [--out DIR] [--state FILE ...]``

Nothing is run: the cells are those of ``table1``, by default the committed ones; a column of a set that the full run
has is never mixed with cells of ``--quick``. As in the paper, "best" is whichever
of SM, ADMM and ADMM-SC has the highest mean F-1 on a set: it is chosen by the scores that are then tested, which
favours it. The alternative is that it is better than the rival; pairs are the repetitions that both have, and a test on
n pairs cannot have a p below 2^-n, so that fewer than five can say nothing at 0.05.
"""

from __future__ import annotations

from tests.benchmarks.papers.fdr_svm import command  # first: it keeps the BLAS to one thread

# isort: split
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import wilcoxon

from tests.benchmarks.papers.fdr_svm.cells import Row, read_rows
from tests.benchmarks.papers.fdr_svm.printed import PRINTED_TABLE_5
from tests.benchmarks.papers.fdr_svm.uci import SETS

LEVEL = 0.05
BEST_OF = ("SM", "SM, code's step", "ADMM", "ADMM-SC", "ADMM-SC, code's tau")
ENOUGH = 0.5
"""Share of the fullest column's repetitions below which a column cannot be "best": its mean is over other splits."""
SUFFIX = ", code's settings"
RESULTS = Path(__file__).parent / "results"
STATES = (RESULTS / "table1-cells.csv",)


def stored(states: Sequence[Path]) -> list[Row]:
    """Rows of all files; those of a column on a set are from the first file that has any."""
    found: dict[tuple[str, str], tuple[int, list[Row]]] = {}
    for number, state in enumerate(states):
        for row in read_rows(state):
            first, kept = found.setdefault((row["set"], row["column"]), (number, []))
            if first == number:
                kept.append(row)
    return [row for _, kept in found.values() for row in kept]


def compared(rows: list[Row]) -> list[dict[str, Any]]:
    """A row for each set and rival: the paper's verdict, ours, p, and on how many pairs."""
    found = []
    for s, chosen in enumerate(SETS):
        scores: dict[str, dict[str, float]] = {}
        for row in rows:
            if row["set"] == chosen.name:
                scores.setdefault(row["column"], {})[row["repetition"]] = row["f1"]
        ours = [name for name in BEST_OF if name in scores]
        most = max((len(scores[name]) for name in ours), default=0)
        ours = [name for name in ours if len(scores[name]) >= ENOUGH * most]
        best = max(ours, key=lambda name: float(np.mean(list(scores[name].values()))), default=None)
        for rival, printed in PRINTED_TABLE_5.items():
            other = scores.get(rival + SUFFIX, {})
            shared = sorted(set(other) & set(scores[best])) if best else []
            p_value = one_sided([scores[best][r] - other[r] for r in shared]) if best and shared else None
            found.append({
                "set": chosen.name, "rival": rival, "best": best, "pairs": len(shared), "p_value": p_value,
                "rejected": None if p_value is None or 2.0 ** -len(shared) >= LEVEL else p_value < LEVEL,
                "printed_rejected": printed[s],
            })
    return found


def one_sided(differences: list[float]) -> float:
    """P value that the median of the differences is not above 0; 1 where all are 0."""
    return float(wilcoxon(differences, alternative="greater").pvalue) if any(differences) else 1.0


def table(found: list[dict[str, Any]]) -> str:
    """Markdown: the paper's verdict, then ours with p and the pairs."""
    names = [chosen.name for chosen in SETS]
    lines = []
    for rival in PRINTED_TABLE_5:
        cells = [next(row for row in found if (row["set"], row["rival"]) == (name, rival)) for name in names]
        lines.append([rival, "printed", *[_verdict(cell["printed_rejected"]) for cell in cells]])
        lines.append([rival, "measured", *[
            "" if c["p_value"] is None else "too few pairs" if c["rejected"] is None
            else f"{_verdict(c['rejected'])} ({c['p_value']:.3g}, n {c['pairs']})"
            for c in cells
        ]])
    best = [next((row["best"] or "" for row in found if row["set"] == name), "") for name in names]
    return command.markdown(["rival", "", *names], [["against", "our best of", *best], *lines])


def _verdict(rejected: bool) -> str:
    return "reject" if rejected else "fail to reject"


def main() -> int:
    """Read the cells, print and write the table; 1 where there are none."""
    return tell_stored(__doc__, "table5", compared, table)


def tell_stored(
    doc: str | None, name: str, measure: Callable[[list[Row]], list[dict[str, Any]]],
    words: Callable[[list[dict[str, Any]]], str],
) -> int:
    """The command ``name``: what ``measure`` makes of stored cells, printed and written; 1 where that is nothing."""
    parser = command.parser(doc, name, jobs=False, quick=False)
    parser.add_argument("--state", type=Path, nargs="+", default=list(STATES), metavar="FILE", help="cells of table1")
    args = parser.parse_args()
    rows = stored(args.state)
    found = measure(rows) if rows else []
    if not found:
        print("there are no cells; run: python -m tests.benchmarks.papers.fdr_svm.table1", file=sys.stderr)
        return 1
    args.out.mkdir(parents=True, exist_ok=True)
    command.write_csv(args.out / f"{name}.csv", found)
    command.write_json(args.json, found)
    text = words(found)
    (args.out / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
