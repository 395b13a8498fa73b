"""Rounds and bytes to a certified gap: ``python -m tests.benchmarks.rounds [--json FILE] [--plot FILE]``.

Breast Cancer Wisconsin Diagnostic (or ``--table``): 398 training rows drawn by the seed, features scaled to [-1, 1],
rows ordered by the first feature plus N(0, 0.3) noise and cut into four sites; no intercept, label flip cost 1, radius
1 / (10 N_g), equal site weights. ``rounds`` is null where 220 rounds were not enough; ``messages`` is how many one site
was sent until then, ``bytes_per_site`` what it sent. The gap is the certified one: upper bound against lower bound, not
against an optimum that nobody would know. "On a box": the same with the ranges of the features as a support; that may
take twice the rounds to 1e-3 and 1e-4.
"""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"  # before numpy loads its BLAS

import argparse  # noqa: E402 - the lines above must come first
import json  # noqa: E402
from collections.abc import Mapping, Sequence  # noqa: E402
from dataclasses import replace  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402

from models.basics import TransportNorm  # noqa: E402
from models.geometry.supports import BoxSupport  # noqa: E402
from models.problem import RobustSpec, SiteProblem  # noqa: E402
from models.simulation.federation import Training, train  # noqa: E402
from tests.benchmarks.command import at_least, in_words, output_file  # noqa: E402
from tests.benchmarks.data import load_binary  # noqa: E402

ROWS, SITES, MAX_ROUNDS = 398, 4, 220
GAPS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6)
TARGETS = {1e-4: 45, 1e-6: 55}
"""Rounds that one question a message may take."""
MANY_TARGETS, MANY_BYTES = {"l1": 20, "l2": 15, "linf": 15}, 64_000
"""Rounds that several questions a message may take to 1e-4 on Breast Cancer, by norm, and the bytes of one site."""
TABLES = {
    "breast_cancer_wisconsin_diagnostic": "M", "banknote_authentication": "1", "parkinsons": "1", "sonar": "M",
    "statlog_heart": "2",
}
"""Tables with the class that is +1."""

RUNS: tuple[tuple[str, str, Mapping[str, float]], ...] = (
    *((f"SM, {g:g}/t", "fdr-sm", {"step_size": g, "step_power": 1.0}) for g in (1.0, 10.0, 100.0, 1000.0)),
    *((f"SM, {g:g}/sqrt(t)", "fdr-sm", {"step_size": g, "step_power": 0.5}) for g in (1.0, 10.0)),
    *((f"ADMM, rho={rho:g}", "fdr-admm", {"rho": rho}) for rho in (1e-3, 1e-2, 1e-1, 1.0)),
    ("ADMM-SC, rho=0.001", "fdr-admm-sc", {"rho": 1e-3}),
    ("level bundle", "level-bundle-plain", {}),
    ("level bundle with prox cuts", "level-bundle", {}),
)
BOXED, BOX_TIMES = ", on a box", 2.0
"""Ending of the name of a run whose worst cases stay within the features' ranges; rounds that it may take, in those of
the run without."""
MANY_RUNS: tuple[tuple[str, str, Mapping[str, float]], ...] = (("six questions a message", "cohort-bundle", {}),)

COHORT_RUNS: tuple[tuple[str, str, Mapping[str, float]], ...] = (
    ("cohort bundle, one question", "cohort-bundle", {"questions": 1.0}),
    ("cohort bundle, six questions", "cohort-bundle", {}),
)
ON_BOX = ("six questions a message", "level bundle with prox cuts", "cohort bundle, six questions")
"""Runs that are made on a box too."""
COHORT_TARGETS = {1e-4: 35}
"""The same for sums over one cohort of all sites."""


def skewed_sites(
    seed: int, norm: TransportNorm, intercept: bool = False, table: str = "breast_cancer_wisconsin_diagnostic"
) -> dict[str, SiteProblem]:
    """The four sites."""
    features, labels = load_binary(table, (TABLES[table],))
    rng = np.random.default_rng(seed)
    drawn = rng.permutation(labels.size)[:ROWS]
    features, labels = features[drawn], labels[drawn]
    low, high = features.min(axis=0), features.max(axis=0)
    features = 2.0 * (features - low) / (high - low) - 1.0
    order = np.argsort(features[:, 0] + rng.normal(0.0, 0.3, labels.size), kind="stable")
    sites = {}
    for g, part in enumerate(np.array_split(order, SITES)):
        spec = RobustSpec(1.0 / (10 * part.size), 1.0, norm, None, intercept)
        sites[f"site-{g}"] = SiteProblem(features[part].copy(), labels[part], spec)
    return sites


def boxed(sites: Mapping[str, SiteProblem]) -> dict[str, SiteProblem]:
    """The sites with worst cases within [-1, 1], the ranges of the features."""
    found = {}
    for name, site in sites.items():
        ends = np.ones(site.features.shape[1])
        found[name] = replace(site, spec=replace(site.spec, support=BoxSupport(-ends, ends)))
    return found


def rows_of(name: str, run: Training) -> list[dict[str, object]]:
    """One row for each wanted gap."""
    rows: list[dict[str, object]] = []
    for gap in GAPS:
        reached = next((each.number for each in run.history if each.gap <= gap), None)
        sent = None if reached is None else sum(each.bytes_per_site for each in run.history[:reached])
        rows.append({"method": name, "gap": gap, "rounds": reached, "messages": reached, "bytes_per_site": sent})
    return rows


def plain_runs(cohort: bool) -> tuple[tuple[str, str, Mapping[str, float]], ...]:
    """The runs without a box: of sums, or of single answers."""
    return COHORT_RUNS if cohort else (*MANY_RUNS, *RUNS)


def verdicts(rows: Sequence[Mapping[str, object]], options: argparse.Namespace) -> list[str]:
    """What was wanted, and whether it is met; of Breast Cancer alone, but for boxes."""

    def rounds(name: str, gap: float) -> int:
        found = next(row["rounds"] for row in rows if row["method"] == name and row["gap"] == gap)
        return MAX_ROUNDS + 1 if found is None else int(str(found))

    names = [name for name, _, _ in plain_runs(options.cohort)]
    found = []
    if options.table.startswith("breast"):
        for gap, most in (COHORT_TARGETS if options.cohort else TARGETS).items():
            took = rounds(names[-1], gap)
            found.append(f"{names[-1]}, gap {gap:.0e}: {took} rounds, at most {most} wanted: {_met(took <= most)}")
        if not options.cohort:
            many = next(row for row in rows if row["method"] == names[0] and row["gap"] == 1e-4)
            most = MANY_TARGETS[options.norm]
            met = rounds(names[0], 1e-4) <= most and float(str(many["bytes_per_site"])) <= MANY_BYTES
            found.append(f"{names[0]}, gap 1e-04: at most {most} rounds and {MANY_BYTES} bytes: {_met(met)}")
    for name in names:
        for gap in (1e-3, 1e-4) if name in ON_BOX else ():
            times = rounds(name + BOXED, gap) / rounds(name, gap)
            told = _met(times <= BOX_TIMES)
            found.append(f"{name}{BOXED}, gap {gap:.0e}: {times:.2f} times, at most {BOX_TIMES:g} wanted: {told}")
    return found


def _met(met: bool) -> str:
    return "met" if met else "MISSED"


def plot(runs: Mapping[str, Training], path: Path) -> None:
    """Certified gap against rounds."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
    for name, run in runs.items():
        gaps = [max(each.gap, 1e-9) for each in run.history]
        width = 2.4 if "bundle" in name else 1.2
        axes.semilogy(range(1, len(gaps) + 1), gaps, label=name, linewidth=width)
    axes.set(xlabel="rounds", ylabel="certified relative gap", ylim=(3e-7, 1.5), xlim=(0, MAX_ROUNDS))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table; write rows and plot where asked."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--json", type=output_file, metavar="FILE", help="write the rows there")
    parser.add_argument("--plot", type=output_file, metavar="FILE", help="write the plot there (else beside --json)")
    parser.add_argument("--norm", choices=("l1", "l2", "linf"), default="linf", help="transport norm (default linf)")
    parser.add_argument("--seed", type=at_least(0), default=1, help="draw of the rows (default 1)")
    parser.add_argument("--intercept", action="store_true", help="train an intercept too")
    parser.add_argument("--bundles", action="store_true", help="the level bundles alone")
    parser.add_argument("--cohort", action="store_true", help="sums over all sites in place of their answers")
    parser.add_argument("--table", choices=sorted(TABLES), default="breast_cancer_wisconsin_diagnostic")
    options = parser.parse_args(arguments)
    sites = skewed_sites(options.seed, options.norm, options.intercept, options.table)
    rows: list[dict[str, object]] = []
    runs: dict[str, Training] = {}
    print(f"{'certified gap':>34}" + "".join(f"{gap:>8.0e}" for gap in GAPS) + "   kB a site to the last", flush=True)
    cohorts = {"all": tuple(sites)} if options.cohort else None
    plain = plain_runs(options.cohort)
    on_box = [(name + BOXED, method, parameters) for name, method, parameters in plain if name in ON_BOX]
    for name, method, parameters in (*plain, *on_box):
        if options.bundles and "bundle" not in method:
            continue
        runs[name] = train(
            boxed(sites) if name.endswith(BOXED) else sites, method=method, parameters=parameters, gap=GAPS[-1],
            max_rounds=MAX_ROUNDS, cohorts=cohorts,
        )
        reached = rows_of(name, runs[name])
        rows += reached
        sent = [float(str(row["bytes_per_site"])) for row in reached if row["bytes_per_site"] is not None]
        line = "".join(f"{'-' if row['rounds'] is None else row['rounds']:>8}" for row in reached)
        print(f"{name:>34}{line}   {sent[-1] / 1e3 if sent else float('nan'):.1f}", flush=True)
    for line in verdicts(rows, options):
        print(line)
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    picture = options.plot or (options.json.with_suffix(".png") if options.json is not None else None)
    if picture is not None:
        plot(runs, picture)


if __name__ == "__main__":
    raise SystemExit(in_words(main))
