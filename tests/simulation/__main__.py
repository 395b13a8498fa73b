"""Faults by the million: ``python -m tests.simulation --seeds N [--from K] [--jobs J] [--json FILE]``.

``--seed S`` plays one seed again with a trace; ``--planted NAME|all`` plants mistakes in the product and says by which
seed each is found. Exit code 0 where nothing is broken, or every mistake was found.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many (100)")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--jobs", type=int, default=1, help="seeds at a time (1)")
    parser.add_argument("--json", type=Path, default=None, help="write what happened to this file")
    parser.add_argument("--seed", type=int, default=None, help="play this seed alone, with a trace")
    parser.add_argument("--planted", default=None, metavar="NAME", help="plant this mistake, or all of them")
    chosen = parser.parse_args(arguments)
    from tests.simulation import planted
    from tests.simulation.soak import soak
    from tests.simulation.works import simulate

    if chosen.planted is not None and chosen.seed is None:
        return planted.report(chosen.planted, chosen.jobs)
    if chosen.seed is not None:
        with planted.planted(chosen.planted or ""):
            outcome = simulate(chosen.seed, trace=True)
        print("\n".join(outcome.trace))
        print("\n".join(outcome.ends))
        print(f"digest {outcome.digest}")
        print("\n".join(f"BROKEN {what}" for what in outcome.broken) or "nothing is broken")
        return 1 if outcome.broken else 0
    return 1 if soak(chosen.first, chosen.seeds, chosen.jobs, chosen.json).broken else 0


if __name__ == "__main__":
    sys.exit(main())
