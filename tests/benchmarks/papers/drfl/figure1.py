r"""Figure 1: how often the sets of DRFL and WAFL hold the truth, and how large they are for it.

``python -m tests.benchmarks.papers.drfl.figure1 [--quick] [--json FILE] [--out DIR]``

The steps of appendix D. First stage: for each radius 1e-5, 2e-5, ..., 0.5, 100 samples of 1,000 rows from the truth,
fresh ones for each radius; the share of the sets that hold it. DRFL's set holds it where both clients' balls do; WAFL's
where the ball around the mixture does. Second stage: for each level .1, .15, ..., 1 the least radius whose share is at
or above it; the share of random systems that lie in the set of that radius around one fixed sample.

The paper leaves points, probabilities and weights open. Chosen here (``two_clients``): two clients far apart, and, as
the counter-example, two clients that overlap. Seeds 1 to 3. Two things are added: the least radius of a level from
20,000 samples, since the least of 50,000 noisy shares lies too low, and more random systems than the 10,000 of the
paper, since sets this small hold few of them. Full: 5 million; quick: 1 million, and every tenth radius.
"""

from __future__ import annotations

from tests.benchmarks.papers.fdr_svm import command  # first: it keeps the BLAS to one thread

# isort: split
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from models.basics import FloatArray
from tests.benchmarks.papers.drfl.plots import coverage_plot
from tests.benchmarks.papers.drfl.two_clients import ALIKE, APART, RADII, System, anything, empirical, truth

STEP, LAST, REPEATS = 1e-5, 0.5, 100
LEVELS = np.round(np.arange(0.1, 1.0001, 0.05), 2)
STEADY, PAPER_SYSTEMS, CHUNK = 20_000, 10_000, 200_000


@dataclass(frozen=True)
class Coverage:
    """Share (n,) of samples whose set of a radius (n,) holds the truth, and ``steady``: needed radii, many samples."""

    radii: FloatArray
    shares: dict[str, FloatArray]
    steady: dict[str, FloatArray]

    def least(self, method: str, level: float) -> float:
        """Least radius whose share reaches the level; NaN where none does."""
        reached = np.flatnonzero(self.shares[method] >= level - 1e-12)
        return float(self.radii[reached[0]]) if reached.size else float("nan")

    def steady_least(self, method: str, level: float) -> float:
        """The same from the many samples: the quantile of the radius that a sample needs."""
        return float(np.quantile(self.steady[method], level, method="inverted_cdf"))


def first_stage(system: System, radii: FloatArray, repeats: int = REPEATS) -> Coverage:
    """Coverage of both sets; both see the same samples."""
    rng, held = np.random.default_rng(1), {method: np.empty(radii.shape[0]) for method in RADII}
    for start in range(0, radii.shape[0], 1000):
        part = radii[start : start + 1000]
        drawn = empirical(system, rng, part.shape[0] * repeats)
        for method, needed in RADII.items():
            inside = needed(system, drawn, truth(system)).reshape(-1, repeats) <= part[:, None]
            held[method][start : start + 1000] = inside.mean(axis=1)
    many = empirical(system, rng, STEADY)
    return Coverage(radii, held, {method: np.sort(needed(system, many, truth(system)))
                                  for method, needed in RADII.items()})


def second_stage(system: System, count: int) -> dict[str, FloatArray]:
    """For both sets the radii (count,) at which each of ``count`` random systems enters the set of a fixed sample.

    Sorted; the first 10,000 drawn are kept apart as ``"<method>, 10,000"``.
    """
    fixed = empirical(system, np.random.default_rng(2), 1)
    rng, found = np.random.default_rng(3), {method: list[FloatArray]() for method in RADII}
    for start in range(0, count, CHUNK):
        drawn = anything(rng, min(CHUNK, count - start))
        for method, needed in RADII.items():
            found[method].append(needed(system, fixed, drawn))
    joined = {method: np.concatenate(parts) for method, parts in found.items()}
    small = {f"{method}, 10,000": np.sort(radii[:PAPER_SYSTEMS]) for method, radii in joined.items()}
    return {method: np.sort(radii) for method, radii in joined.items()} | small


def volume(entered: FloatArray, radius: float) -> float:
    """Share of the random systems that the set of this radius holds."""
    return int(np.searchsorted(entered, radius, side="right")) / int(entered.shape[0])


def levels(system: System, coverage: Coverage, entered: dict[str, FloatArray]) -> list[dict[str, Any]]:
    """A row for each level: the radius and the volume of both sets."""
    rows = []
    for level in LEVELS:
        row: dict[str, Any] = {"system": system.name, "level": float(level)}
        for method in RADII:
            paper, steady = coverage.least(method, level), coverage.steady_least(method, level)
            row[f"{method} radius"] = paper
            row[f"{method} volume of 10,000"] = volume(entered[f"{method}, 10,000"], paper)
            row[f"{method} radius, steady"] = steady
            row[f"{method} volume, steady"] = volume(entered[method], steady)
        rows.append(row)
    return rows


def verdict(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each system at how many levels WAFL needs the larger radius and the larger volume."""
    found = []
    for name in dict.fromkeys(row["system"] for row in rows):
        own = [row for row in rows if row["system"] == name]
        count = {
            what: sum(row[f"WAFL {what}"] > row[f"DRFL {what}"] for row in own)
            for what in ("radius", "radius, steady", "volume, steady")
        }
        found.append({"system": name, "levels": len(own), **{f"WAFL larger: {what}": n for what, n in count.items()}})
    return found


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown: radii and volumes at some levels, and how often the paper's claim holds."""
    shown = [row for row in rows if row["level"] in (0.1, 0.5, 0.9, 0.95, 1.0)]
    names = [name for name in rows[0] if name not in ("system", "level")]
    text = command.markdown(
        ["system", "level", *names],
        [[row["system"], f"{row['level']:.2f}", *[f"{row[name]:.3g}" for name in names]] for row in shown],
    )
    counts = verdict(rows)
    return text + "\n" + command.markdown(list(counts[0]), [[str(value) for value in row.values()] for row in counts])


def run(out: Path, quick: bool) -> list[dict[str, Any]]:
    """Both systems; CSV of the curves and of the levels, the plot, the table."""
    radii = STEP * np.arange(1, round(LAST / STEP) + 1, 10 if quick else 1, dtype=np.float64)
    curves, rows, drawn = [], list[dict[str, Any]](), {}
    for system in (APART, ALIKE):
        coverage = first_stage(system, radii)
        entered = second_stage(system, 1_000_000 if quick else 5_000_000)
        own = levels(system, coverage, entered)
        rows += own
        drawn[system.name] = (coverage.radii, coverage.shares, own)
        for i, radius in enumerate(radii):
            if all(share[i] == 1 for share in coverage.shares.values()) and i % 100:
                continue  # both at 1: a point in a hundred says it
            curves.append({"system": system.name, "radius": float(radius),
                           **{method: float(share[i]) for method, share in coverage.shares.items()}})
    out.mkdir(parents=True, exist_ok=True)
    command.write_csv(out / "coverage.csv", curves)
    command.write_csv(out / "figure1.csv", rows)
    coverage_plot(drawn, out / "figure1.png")
    (out / "figure1.md").write_text(table(rows), encoding="utf-8")
    return rows


def main() -> int:
    """Run and write; there is no state to resume, it takes seconds."""
    parser = command.parser(__doc__, "figure1", jobs=False)
    parser.set_defaults(out=Path("benchmark-results") / "drfl" / "figure1")
    args = parser.parse_args()
    rows = run(args.out, args.quick)
    command.write_json(args.json, rows)
    print(table(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
