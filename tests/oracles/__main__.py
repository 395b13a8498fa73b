"""Hold the project to the oracle: ``python -m tests.oracles [--n 2000] [--start 0] [--jobs 2] [--seed S ...]``."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

from tests.oracles.wasserstein.checks import Fault, faults_of
from tests.oracles.wasserstein.draw import draw

LOOSE_SHARE = 0.005
"""Problems of which a claim may be loose: drawn are radii ten powers of ten above the features too."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw problems and print every fault with its seed; 1 where a claim is false, or many are loose."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracles", description=__doc__)
    parser.add_argument("--n", type=int, default=2000, help="how many problems")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--seed", type=int, nargs="+", help="these alone, and what they are")
    wanted = parser.parse_args(arguments)
    seeds = wanted.seed or range(wanted.start, wanted.start + wanted.n)
    if wanted.seed:
        for seed in seeds:
            print(draw(seed))
    began, found = time.monotonic(), list[Fault]()
    places = {seed: _place(seed) for seed in seeds}
    with ProcessPoolExecutor(max(1, min(wanted.jobs, len(places)))) as pool:
        for done, faults in enumerate(pool.map(faults_of, places, chunksize=1), start=1):
            for fault in faults:
                word = "LOOSE" if fault.loose else "FALSE"
                print(f"{word} {fault.kind}: {fault.where}, seed {fault.seed}: {fault.text}", flush=True)
            found += faults
            if sys.stdout.isatty() or done % 100 == 0 or done == len(places):
                failed = len({fault.seed for fault in found})
                spent = time.monotonic() - began
                line = f"{done} of {len(places)} problems, {failed} with faults, {spent:.0f} s"
                print(f"\r{line}" if sys.stdout.isatty() else line, end="" if sys.stdout.isatty() else "\n", flush=True)
    print(f"\n\n{'loss x support':34}{'problems':>9}{'faulty':>8}")
    faulty, drawn = Counter(places[seed] for seed in {fault.seed for fault in found}), Counter(places.values())
    for place, count in sorted(drawn.items()):
        print(f"{place:34}{count:9}{faulty[place]:8}")
    for kind, count in Counter(fault.kind for fault in found).most_common():
        replay = " ".join(str(fault.seed) for fault in found if fault.kind == kind)
        print(f'{kind}: {count} problems, replay with make oracle SEED="{replay}"')
    loose = {fault.seed for fault in found if fault.loose}
    return int(any(not fault.loose for fault in found) or len(loose) > LOOSE_SHARE * len(places))


def _place(seed: int) -> str:
    drawn = draw(seed)
    return f"{drawn.loss.name} x {drawn.support}"


if __name__ == "__main__":
    raise SystemExit(main())
