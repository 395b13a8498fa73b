"""A plant leaves the only cohort: ``python -m tests.benchmarks.unlearning [--json FILE] [--table NAME] [--seeds 2]``.

Four unlike plants (as in ``tests.benchmarks.rounds``, l2, with an intercept) train on sums over all of them; each in
turn leaves, so that no cut holds any more. Rounds of the three others to a certified 1e-3: from zero, from the champion
of the four, and from their own optimum, which nobody knows: fewer than these no better guess of where to begin gives.
"""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"  # before numpy loads its BLAS

import argparse  # noqa: E402 - the lines above must come first
import json  # noqa: E402
from collections.abc import Sequence  # noqa: E402
from statistics import median  # noqa: E402

from models.problem import SiteProblem  # noqa: E402
from models.simulation.federation import Training, train  # noqa: E402
from tests.benchmarks.command import at_least, in_words, output_file  # noqa: E402
from tests.benchmarks.rounds import skewed_sites  # noqa: E402

METHOD, GAP, TIGHT, MOST_ROUNDS, WANTED = "cohort-bundle", 1e-3, 1e-7, 100, 5
TABLES = ("breast_cancer_wisconsin_diagnostic", "banknote_authentication", "statlog_heart")
BEGINS = ("from_zero", "from_champion", "from_optimum")


def on_sums(
    sites: dict[str, SiteProblem], questions: int, gap: float = GAP, after: Training | None = None
) -> Training:
    """A training in one cohort; ``after``: from where that one ended, with none of its cuts."""
    return train(
        sites, method=METHOD, parameters={"questions": float(questions)}, gap=gap, max_rounds=MOST_ROUNDS,
        cohorts={"cohort-1": tuple(sites)}, after=after and after.end,
    )


def departures(seed: int, table: str, questions: int) -> list[dict[str, object]]:
    """A row for each plant that leaves; rounds of a run that did not come to its gap are None."""
    plants = skewed_sites(seed, "l2", intercept=True, table=table)
    champion, rows = on_sums(plants, questions), []
    for gone in plants:
        left = {name: plant for name, plant in plants.items() if name != gone}
        begins = (None, champion, on_sums(left, questions, TIGHT))
        row: dict[str, object] = {"table": table, "seed": seed, "questions": questions, "gone": gone}
        for name, after in zip(BEGINS, begins, strict=True):
            found = on_sums(left, questions, after=after)
            row[name] = found.n_rounds if found.certificate.gap <= GAP else None
        rows.append(row)
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each table; write the rows where asked."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--json", type=output_file, metavar="FILE", help="write the rows there")
    parser.add_argument("--seeds", type=at_least(), default=2, help="deals of the rows (default 2)")
    parser.add_argument("--questions", type=at_least(1, 8), default=6, help="of a message (default 6)")
    parser.add_argument("--table", choices=TABLES, help="default: all")
    options = parser.parse_args(arguments)
    rows: list[dict[str, object]] = []
    for table in [options.table] if options.table else TABLES:
        found = [row for seed in range(1, options.seeds + 1) for row in departures(seed, table, options.questions)]
        rows += found
        told = []
        for name in BEGINS:
            rounds = [MOST_ROUNDS if row[name] is None else int(str(row[name])) for row in found]
            told.append(f"{name.replace('_', ' ')} {median(rounds):g} ({min(rounds)} to {max(rounds)})")
        missed = sum(row["from_champion"] is None or int(str(row["from_champion"])) > WANTED for row in found)
        print(f"{table}: {', '.join(told)}; {missed} of {len(found)} above {WANTED} from the champion", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(in_words(main))
