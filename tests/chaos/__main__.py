"""Faults on real processes: ``python -m tests.chaos [--faults N] [--seed S] [--database NAME] [--json FILE]``.

The seed gives the same faults in the same order; the moments in which they meet the processes are real ones. Exit
code 1 where something is broken; its folder is then left in place.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--faults", type=int, default=200, help="how many (200)")
    parser.add_argument("--seed", type=int, default=1, help="which (1)")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--keep", action="store_true", help="leave the works' folder in place in any case")
    parser.add_argument("--json", type=Path, default=None, help="write what happened to this file")
    chosen = parser.parse_args(arguments)
    from tests.chaos.campaign import campaign

    account = campaign(chosen.seed, chosen.faults, chosen.database, lambda text: print(text, flush=True), chosen.keep)
    width = max((len(name) for name in account.outcomes), default=0)
    print(f"\n{'fault':{width}}  times  outcomes")
    for name, said in sorted(account.outcomes.items()):
        print(f"{name:{width}}  {said.total():5d}  " + ", ".join(f"{what} ({count})" for what, count in said.items()))
    ends = ", ".join(f"{count} {status}" for status, count in sorted(account.ends.items()))
    print(
        f"\n{account.faults} faults over {account.database}, {account.ends.total()} runs ({ends}), "
        f"{account.rounds} rounds, {account.recounted} of them computed once more, "
        f"{len(account.broken)} broken, {account.seconds:.0f} s"
    )
    for failure in account.failures:
        print(f"failed, as it may: {failure}")
    print("\n".join(f"BROKEN {what}" for what in account.broken) or "nothing is broken")
    again = f"make chaos FAULTS={chosen.faults} SEED={chosen.seed} DATABASE={chosen.database}"
    print(f"the same faults again: {again}")
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(account.document(), indent=1) + "\n")
    return 1 if account.broken else 0


if __name__ == "__main__":
    sys.exit(main())
