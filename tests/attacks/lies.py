"""``python -m tests.attacks.lies --json FILE``: plants that lie nine ways, and honest ones, before the coordinator.

Every lie is told by one of four plants (rows of a table dealt at random), through the coordinator on ports without a
server: frames, signatures, admission, contradictions, evaluation. It begins in round 1, at zero weights, or in round 2
where the risk is false too, which is known at zero weights. A lie is convicted where the run goes on without that
plant; no other plant may be left out. Else ``excess`` tells how far the risk of the honest problem at the run's weights
is above its optimum, relative. ``--honest N`` draws N runs of honest plants: tables, losses, supports, norms and radii.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from models.basics import FloatArray
from models.problem import SiteProblem
from models.worst_case.risk import site_risk
from services.auditing.auditor import Finding
from services.site_agent.answers.local_solve import site_problems
from tests.attacks.cohort import Cohort, weights_of
from tests.attacks.plants import PLANTS, Deal, Federation, drawn_deal
from tests.attacks.tables import read_table
from tests.benchmarks.data import data_folder

LIAR = "plant-4"
ROUNDS, GAP = 40, 1e-3
TABLES = ("breast_cancer_wisconsin_diagnostic",)
Answer = dict[str, FloatArray]
Plants = Federation | Cohort
Lie = Callable[[Answer, Plants, np.random.Generator], Answer]

HEIGHTS = ("risk", "cut_height", "minorant_offset")
SLOPES = ("slope", "minorant_slope")


def times(names: Sequence[str], factor: float) -> Lie:
    """So many times what is true, of some arrays."""
    return lambda said, _, __: {name: each * factor if name in names else each for name, each in said.items()}


def noisy(size: float) -> Lie:
    """Every number off by a share of it; risk and cut at the point stay one number, or it would show at once."""

    def lie(said: Answer, _: Plants, draw: np.random.Generator) -> Answer:
        off = {name: each * (1.0 + size * draw.standard_normal(each.shape)) for name, each in said.items()}
        return {**off, "cut_height": off["risk"], **_weights_of(said)}

    return lie


def _weights_of(said: Answer) -> Answer:
    """Norm weights as they are: above their limit one would be refused alone."""
    return {name: each for name, each in said.items() if "norm_weight" in name}


def random_slope(said: Answer, _: Plants, draw: np.random.Generator) -> Answer:
    """Slopes in directions of their own, as long as the true ones."""
    drawn = {name: draw.standard_normal(said[name].shape) for name in SLOPES}
    return said | {
        name: each * np.linalg.norm(said[name]) / np.linalg.norm(each) for name, each in drawn.items()
    }


def stale(said: Answer, plants: Plants) -> Answer:
    """The answer of the round before; the first there is none of."""
    before = plants.before.get(LIAR, {})
    return before if before.keys() == said.keys() else said


LIES: dict[str, Lie] = {
    "signs flipped": times(SLOPES, -1.0),
    "scale doubled": times(SLOPES, 2.0),
    "stale answers": lambda said, plants, _: stale(said, plants),
    "random slope": random_slope,
    "noise 1 %": noisy(0.01),
    "noise 10 %": noisy(0.1),
    "risk halved": times(HEIGHTS, 0.5),
    "risk 5 % up": times(HEIGHTS, 1.05),
    "another plant's answer": lambda said, plants, _: plants.now_of("plant-3", said),
}


SUM_MODES = ("sum", "audited sum")
FALSE_RISK = ("noise 1 %", "noise 10 %", "risk halved", "risk 5 % up")
"""Lies that admission refuses at zero weights, where every risk is known; they begin a round later."""


def excess(deal: Deal, weights: FloatArray, optimum: float) -> float:
    """How far the risk of the honest problem at weights (1, P + 1) is above its optimum, relative to that."""
    return honest_risk(deal, weights) / optimum - 1.0


def honest_risk(deal: Deal, weights: FloatArray) -> float:
    """Mean over the plants of the worst-case risk of their rows."""
    risks = []
    for features, classes in deal.rows:
        (problem,) = site_problems(deal.spec, features, classes, deal.asset_type)
        plane = weights[0] if deal.spec.fit_intercept else weights[0, :-1]
        risks.append(site_risk(plane, problem).value)
    return float(np.mean(risks))


def lies(table: str, deals: Sequence[Deal], names: Sequence[str], folder: Path) -> list[dict[str, Any]]:
    """A line for each lie: seeds convicted, when, and what the others changed."""
    optima = []
    for deal in deals:
        outcome = Federation(deal, folder).run(gap=1e-5, rounds=100)
        assert not outcome.run.excluded
        optima.append(outcome.trained.certificate.lower)
    lines = []
    for name in names:
        found: list[tuple[int | None, str, float]] = []
        for seed, (deal, optimum) in enumerate(zip(deals, optima, strict=True)):
            plants = Federation(deal, folder, liar=LIAR, lie=_begun(name, seed))
            outcome = plants.run(gap=GAP, rounds=ROUNDS)
            verdict = next((each for each in outcome.run.excluded if each.site_id == LIAR), None)
            others = [each.site_id for each in outcome.run.excluded if each.site_id != LIAR]
            assert not others, f"{name}: honest {others} convicted"
            cost = 0.0 if verdict else excess(deal, outcome.trained.weights, optimum)
            found.append((verdict.round if verdict else None, verdict.code if verdict else "", cost))
        rounds = [each for each, _, _ in found if each is not None]
        missed = [cost for each, _, cost in found if each is None]
        codes = {code for _, code, _ in found if code}
        lines.append(_line(table, name, "per-site", len(deals), rounds, missed, codes))
    return lines


def on_sums(table: str, deals: Sequence[Deal], names: Sequence[str], folder: Path) -> list[dict[str, Any]]:
    """As :func:`lies`, of plants that are seen in sums alone: two lines for each lie.

    ``sum``: two rounds are opened where the sums contradict themselves. ``audited sum``: and all rounds at the end.
    """
    optima = [_honest_optimum(deal, folder) for deal in deals]
    lines = []
    for name in names:
        told: dict[str, tuple[list[int], list[float], set[str]]] = {mode: ([], [], set()) for mode in SUM_MODES}
        for seed, (deal, optimum) in enumerate(zip(deals, optima, strict=True)):
            cohort = Cohort(_problems(deal), folder, LIAR, _begun(name, seed), gap=GAP)
            found: list[Finding] = []
            while not found and not cohort.done and len(cohort.rounds) < ROUNDS:
                found = cohort.round()
            cost = excess(deal, weights_of(cohort), optimum)
            for mode in SUM_MODES:
                found = found if mode == "sum" or _convicted(found) else cohort.final_audit()
                assert all(each.site in ("", LIAR) or each.kind == "copied" for each in found), f"{name}: {found}"
                rounds, missed, codes = told[mode]
                codes |= {each.kind for each in found}
                if _convicted(found):
                    rounds.append(len(cohort.rounds))
                else:
                    missed.append(cost)
        lines += [_line(table, name, mode, len(deals), *told[mode]) for mode in SUM_MODES]
    return lines


def _convicted(found: Sequence[Finding]) -> bool:
    return any(each.site for each in found)


def _honest_optimum(deal: Deal, folder: Path) -> float:
    """Lower bound on the optimum, from honest plants on sums: no audit, and the bound holds."""
    cohort = Cohort(_problems(deal), folder, gap=1e-5)
    while not cohort.done and len(cohort.rounds) < 120:
        assert not cohort.round(), "honest plants were audited"
    return float(cohort.server.certificate(cohort.state).lower)


def _problems(deal: Deal) -> dict[str, SiteProblem]:
    """The plants' problems, of one head."""
    return {
        name: site_problems(deal.spec, features, outcomes, deal.asset_type)[0]
        for name, (features, outcomes) in zip(PLANTS, deal.rows, strict=True)
    }


def honest_on_sums(count: int, folder: Path) -> dict[str, Any]:
    """Runs of honest plants on sums over drawn problems, audited at the end: how many were suspected of anything."""
    audited = []
    for seed in range(count):
        cohort, found = Cohort(_problems(drawn_deal(seed)), folder, gap=1e-4), list[Finding]()
        while not cohort.done and len(cohort.rounds) < 12:
            if found := cohort.round():
                break
        found = found or [each for each in cohort.final_audit() if each.kind != "nobody"]
        if found:
            audited.append({"seed": seed, "why": str(found)})
    return {"honest_runs_on_sums": count, "audited": audited}


def _line(
    table: str, name: str, mode: str, seeds: int, rounds: Sequence[int], missed: Sequence[float], codes: set[str]
) -> dict[str, Any]:
    line = {
        "table": table, "mode": mode, "lie": name, "seeds": seeds, "convicted": len(rounds),
        "median_round": float(np.median(rounds)) if rounds else None, "last_round": max(rounds, default=None),
        "codes": sorted(codes), "largest_excess": max(missed, default=0.0),
    }
    print(_printed(line), flush=True)
    return line


def _begun(name: str, seed: int) -> Callable[[int, Answer, Any], Answer]:
    lie, first, draw = LIES[name], 2 if name in FALSE_RISK else 1, np.random.default_rng([11, seed])
    return lambda number, said, plants: lie(said, plants, draw) if number >= first else said


def honest(count: int, folder: Path, first: int = 0) -> dict[str, Any]:
    """Runs of honest plants over drawn problems: how many of them convicted a plant."""
    convicted = []
    for seed in range(first, first + count):
        outcome = Federation(drawn_deal(seed), folder).run(gap=1e-4, rounds=15)
        if outcome.run.excluded or outcome.evaluation.convicted:
            convicted.append({"seed": seed, "why": str(outcome.run.excluded or outcome.evaluation.convicted)})
    return {"honest_runs": count, "convicted": convicted}


def _printed(line: Mapping[str, Any]) -> str:
    when = "-" if line["median_round"] is None else f"{line['median_round']:g}"
    who = f"{line['mode']:<13}{line['lie']:<24}{line['convicted']:>3} of {line['seeds']:<4}"
    rest = f"not convicted: at most {line['largest_excess']:.2g} above the optimum"
    return f"{who}median round {when:<6}{', '.join(line['codes']):<28}{rest}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 where a lie not convicted cost more than the gap, or an honest plant was convicted."""
    parser = argparse.ArgumentParser(prog="python -m tests.attacks.lies", description=__doc__)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--lies", nargs="+", default=list(LIES), choices=list(LIES))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--modes", nargs="+", default=["per-site", "sum"], choices=["per-site", "sum"])
    parser.add_argument("--honest", type=int, default=0)
    chosen = parser.parse_args(arguments)
    lines: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for table in chosen.tables:
            features, labels, _ = read_table(chosen.data / f"{table}.csv")
            deals = [Deal.of_table(features, labels, seed) for seed in range(chosen.seeds)]
            for mode in chosen.modes:
                lines += (lies if mode == "per-site" else on_sums)(table, deals, chosen.lies, folder)
        told = honest(chosen.honest, folder) | honest_on_sums(chosen.honest, folder)
    print(f"honest: {len(told['convicted'])} of {chosen.honest} runs convicted a plant")
    print(f"honest on sums: {len(told['audited'])} of {chosen.honest} runs suspected a plant")
    chosen.json.write_text(json.dumps({"lies": lines, **told}, indent=1) + "\n")
    honest_found = told["convicted"] or told["audited"]
    # Of sums alone a lie is found where the sum shows it: what that leaves is printed, and is no failure.
    costly = [line for line in lines if line["largest_excess"] > GAP and line["mode"] != "sum"]
    return int(bool(honest_found or costly))


if __name__ == "__main__":
    sys.exit(main())
