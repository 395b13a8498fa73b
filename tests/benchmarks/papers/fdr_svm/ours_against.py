"""One-sided Wilcoxon signed-rank tests of Ballast's own two columns against every other one, from the stored cells.

``python -m tests.benchmarks.papers.fdr_svm.ours_against [--json FILE] [--out DIR] [--state FILE ...]``

Nothing is run: the cells are those of ``table1``, by default the committed ones. Pairs are the splits that both have.
Both directions are tested, that ours is better and that the other is. ``LEVEL`` is shared by all tests of one kind of
column (Bonferroni): with 4 rivals, 2 columns and 7 sets a single test must be below 0.05 / 56.
"""

from __future__ import annotations

from tests.benchmarks.papers.fdr_svm import command  # first: it keeps the BLAS to one thread

# isort: split
from typing import Any

import numpy as np

from tests.benchmarks.papers.fdr_svm.author_columns import RIVALS
from tests.benchmarks.papers.fdr_svm.cells import Row
from tests.benchmarks.papers.fdr_svm.our_features import ON_OUR_FEATURES
from tests.benchmarks.papers.fdr_svm.service_columns import SERVICE
from tests.benchmarks.papers.fdr_svm.table5 import BEST_OF, LEVEL, SUFFIX, one_sided, tell_stored
from tests.benchmarks.papers.fdr_svm.uci import SETS

KINDS = {
    "rival": tuple(name + SUFFIX for name in RIVALS),
    "rival on our features": tuple(ON_OUR_FEATURES),
    "the paper's own": BEST_OF,
    "other": ("Central (DR-SVM)", "mended and certified"),
}


def against(rows: list[Row]) -> list[dict[str, Any]]:
    """A row for each of our columns, other column and set that share splits: mean lead, p of both directions, pairs."""
    scores: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        scores.setdefault((row["set"], row["column"]), {})[row["repetition"]] = row["f1"]
    found = []
    for kind, others in KINDS.items():
        for ours in SERVICE:
            for other in others:
                for chosen in SETS:
                    mine, theirs = scores.get((chosen.name, ours), {}), scores.get((chosen.name, other), {})
                    shared = sorted(set(mine) & set(theirs), key=int)
                    if shared:
                        leads = [mine[r] - theirs[r] for r in shared]
                        found.append({
                            "kind": kind, "ours": ours, "against": other, "set": chosen.name, "pairs": len(shared),
                            "lead": float(np.mean(leads)), "p_ours_better": one_sided(leads),
                            "p_other_better": one_sided([-lead for lead in leads]),
                        })
    return found


def verdict(row: dict[str, Any]) -> str:
    """"better", "worse" (at ``LEVEL`` over all tests of the kind) or "level"."""
    n_tests = len(SERVICE) * len(KINDS[row["kind"]]) * len(SETS)
    if row["p_ours_better"] < LEVEL / n_tests:
        return "better"
    return "worse" if row["p_other_better"] < LEVEL / n_tests else "level"


def table(found: list[dict[str, Any]]) -> str:
    """Markdown: lead of ours, the smaller of both p values, pairs; **bold** where the other is better."""
    by = {(row["ours"], row["against"], row["set"]): row for row in found}
    lines = []
    for ours, other in dict.fromkeys((row["ours"], row["against"]) for row in found):
        lines.append([ours, other, *[_cell(by.get((ours, other, chosen.name))) for chosen in SETS]])
    text = command.markdown(["ours", "against", *[chosen.name for chosen in SETS]], lines)
    counts = {
        (kind, ours): [verdict(row) for row in found if (row["kind"], row["ours"]) == (kind, ours)]
        for kind in KINDS for ours in SERVICE
    }
    words = [
        [kind, ours, *[str(verdicts.count(each)) for each in ("better", "level", "worse")]]
        for (kind, ours), verdicts in counts.items()
    ]
    return text + "\n" + command.markdown(["against", "ours", "better", "level", "worse"], words)


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    text = f"{row['lead']:+.4f} ({min(row['p_ours_better'], row['p_other_better']):.2g}, n {row['pairs']})"
    return {"better": text, "level": text + " level", "worse": f"**{text}**"}[verdict(row)]


def main() -> int:
    """Read the cells, print and write the tables; 1 where there are none."""
    return tell_stored(__doc__, "ours_against", against, table)


if __name__ == "__main__":
    raise SystemExit(main())
