"""Keys that change and plants that leave, by the thousand: ``python -m tests.simulation.rotations --changes N``.

One plan is trained again and again on single answers, in simulated time, while every few seconds a plant gets another
key, is suspended, or comes back. No round may be lost, and no answer of a key that holds no longer may count: the
invariants of every seed are looked at after every step.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

from tests.simulation.network import Weather
from tests.simulation.scenario import Scenario, draw_scenario
from tests.simulation.soak import Soak, settle
from tests.simulation.works import Works, simulate

BETWEEN_SECONDS = 0.25
A_WORKS = 250
"""Changes of one simulated works; then the next is founded, so that its store stays small."""


def calm(seed: int) -> Scenario:
    """A scenario in which nothing befalls the works but what is done here."""
    drawn = draw_scenario(seed, "plain")
    sites = tuple(f"plant-{number}" for number in range(1, 6))
    plan = drawn.plan.model_copy(update={"reveal": "each site", "method": "level-bundle", "min_sites": 2,
                                         "max_rounds": 6, "gap": 1e-6})
    nothing = dict.fromkeys(("locked", "full", "crash_before", "crash_after"), 0.0)
    return replace(
        drawn, sites=sites, plan=plan, weather=Weather(), store_faults=nothing,
        ledger_faults={"torn": 0.0, "full": 0.0}, registry_away=0.0, crash_within=0, slow={}, liar="", lie="",
        actions=drawn.actions[:1], calm_at=1.0,
    )


async def changes(works: Works, count: int) -> None:
    """Change keys and sites ``count`` times, a run always on its way."""
    draw = works.world.stream("rotations")
    away: set[str] = set()
    for _ in range(count):
        await asyncio.sleep(BETWEEN_SECONDS * (0.5 + draw.random()))
        if not works.invariants.unfinished():
            works.order("trigger", "")
        site = draw.choice(works.scenario.sites)
        if site in away:
            works.order("reactivate", site)
            away.discard(site)
        elif draw.random() < 0.3 and len(away) < 2:
            works.order("suspend", site)
            away.add(site)
        else:
            rotate(works, site, draw.uniform(0.2, 3.0))
        works.world.faults["changes of keys and sites"] += 1


def rotate(works: Works, site: str, grace: float) -> None:
    """Give a plant another key, which it uses a moment later; the one before holds for ``grace`` seconds."""
    plant = works.plants[site]
    former, key = plant.key, plant.new_key()
    works.store.sites.rotate_key(site, key, works.world.now() + timedelta(seconds=grace))
    works.invariants.revoked(site, former, grace)
    works.world.loop.call_later(grace / 2, plant.kill)


def rotations(count: int, first: int = 0, *, tell: bool = False) -> Soak:
    """Make so many changes, in as many works as that takes."""
    found, began, left, seed = Soak(), time.monotonic(), count, first
    while left > 0:
        share = min(left, A_WORKS)
        found.add(simulate(seed, scenario=calm(seed), also=partial(changes, count=share)))
        found.seconds = time.monotonic() - began
        if tell:
            print(found.line(), flush=True)
        left, seed = left - share, seed + 1
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.rotations", description=__doc__)
    parser.add_argument("--changes", type=int, default=10_000, help="how many (10000)")
    chosen = parser.parse_args(arguments)
    settle()
    found = rotations(chosen.changes, tell=True)
    for seed, broken in found.broken.items():
        print(f"works {seed}: " + "; ".join(broken))
    print(found.line())
    print("runs: " + ", ".join(f"{end} {count}" for end, count in sorted(found.ends.items())))
    return 1 if found.broken else 0


if __name__ == "__main__":
    sys.exit(main())
