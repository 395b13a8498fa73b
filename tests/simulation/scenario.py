"""What happens in one seed: plants, a plan, the weather, the faults of disks, and what befalls whom at which moment."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

from services.contracts.plans.plan import Plan
from tests.simulation.modes import changes_of, draw_mode, widened
from tests.simulation.network import Weather

DEADLINE_SECONDS = 5.0
PATIENCE_SECONDS = 10.0
EACH_SITE = ("level-bundle", "level-bundle-plain", "level-bundle", "fdr-sm", "fedavg")
ON_SUMS = ("cohort-bundle", "fdr-sm")
LIES = ("scaled", "mirrored", "not finite", "huge", "shifted")
MOST_VIRTUAL_SECONDS = 900.0
"""By then every run of every scenario has ended: all rounds, each after all the patience there is, and all attempts."""


@dataclass(frozen=True)
class Action:
    """Something that is done at a moment: ``what``, to whom, and a number that belongs to it."""

    at: float
    what: str
    whom: str = ""
    number: float = 0.0


@dataclass(frozen=True)
class Scenario:
    """One seed's works."""

    seed: int
    sites: tuple[str, ...]
    plan: Plan
    weather: Weather
    calm_at: float
    store_faults: dict[str, float]
    ledger_faults: dict[str, float]
    registry_away: float
    crash_within: int
    slow: dict[str, float]
    liar: str
    lie: str
    actions: tuple[Action, ...] = field(default=())
    mode: str = "plain"

    @property
    def clock_or_pause(self) -> bool:
        """Whether a process or the clock may stop while others go on: a lease can be lost without a word then."""
        return any(each.what in ("hold flow", "jump") for each in self.actions)


def draw_scenario(seed: int, mode: str | None = None) -> Scenario:
    """The scenario of a seed; in another ``mode`` than it draws, where given."""
    draw = random.Random(f"{seed}/scenario")
    reveal = draw.choice(("each site", "each site", "sums"))
    count = draw.randint(3, 5)
    sites = tuple(f"plant-{number}" for number in range(1, count + 1))
    stated = {
        "name": "nightly", "asset_type": "rig", "reveal": reveal, "warm_start": False, "max_rounds": draw.randint(2, 6),
        "method": draw.choice(EACH_SITE if reveal == "each site" else ON_SUMS), "gap": 1e-2,
        "spec": {"radius": {"rule": "fixed", "value": 0.05}}, "min_sites": min(count, draw.randint(1, count + 1)),
        "gates": {"max_gap": None}, "auto_promote": draw.random() < 0.7,
        "round_deadline_seconds": DEADLINE_SECONDS, "absence_patience_seconds": PATIENCE_SECONDS,
    }
    calm = draw.uniform(6.0, 25.0)

    def rate(chance: float, most: float) -> float:
        return draw.random() * most if draw.random() < chance else 0.0

    weather = Weather(
        lost=rate(0.5, 0.15), doubled=rate(0.5, 0.3), corrupted=rate(0.4, 0.1), replayed=rate(0.4, 0.2),
        delayed=rate(0.5, 0.3), longest_delay=draw.choice((0.5, 3.0, 8.0)), until=calm,
    )
    store = {
        kind: rate(0.25, most)
        for kind, most in (("locked", 0.1), ("full", 0.05), ("crash_before", 0.08), ("crash_after", 0.08))
    }
    ledger = {"torn": rate(0.2, 0.1), "full": rate(0.15, 0.05)}
    lies = reveal == "each site" and draw.random() < 0.2
    drawn = Scenario(
        seed, sites, Plan.model_validate(stated), weather, calm, store, ledger, rate(0.15, 0.3),
        draw.choice((0, 0, 60, 150)), {draw.choice(sites): draw.uniform(0.5, 6.0)} if draw.random() < 0.15 else {},
        draw.choice(sites) if lies else "", draw.choice(LIES) if lies else "", _actions(draw, sites, calm),
    )
    return _in_mode(drawn, stated, draw_mode(seed) if mode is None else mode)


def _in_mode(drawn: Scenario, stated: dict[str, Any], mode: str) -> Scenario:
    """The scenario with what its mode changes; nothing else of it moves."""
    draw = random.Random(f"{drawn.seed}/{mode}")
    spec = stated["spec"] | ({"multi_class": "crammer_singer"} if mode == "all classes" else {})
    changed = stated | {"spec": spec} | changes_of(mode, draw, stated["reveal"], stated["method"])
    changed = widened(drawn.seed, mode, changed)
    honest = {"liar": "", "lie": ""} if changed["reveal"] == "sums" else {}
    if mode == "waiting" and draw.random() < 0.7:
        honest |= {"slow": {draw.choice(drawn.sites): draw.uniform(0.1, 6.0)}}
    actions = drawn.actions
    if changed["warm_start"]:  # what a run goes on from is one that completed: two weeks more, once all is calm
        more = [Action(drawn.calm_at + draw.uniform(10.0, 20.0) * week, "week") for week in (1, 2)]
        actions = (*actions, *more)
    if mode == "tuning" and random.Random(f"{drawn.seed}/tuned alone").random() < 0.5:
        first, *others = actions  # a training follows, and finds the choice there
        ordered = (replace(first, what="tune"), *others, Action(drawn.calm_at + 12.0, "trigger"))
        actions = tuple(sorted(ordered, key=lambda each: each.at))
    return replace(drawn, plan=Plan.model_validate(changed), mode=mode, actions=actions, **honest)


def _actions(draw: random.Random, sites: tuple[str, ...], calm: float) -> tuple[Action, ...]:
    """What befalls the works; the first thing is the order for a run."""
    found = [Action(0.5, "trigger")]
    for _ in range(draw.randint(0, 5)):
        at, site = draw.uniform(0.6, calm), draw.choice(sites)
        what = draw.choice((
            "kill plant", "power cut", "hold plant", "kill flow", "hold flow", "kill watcher", "cut site",
            "cut coordinator", "jump", "rotate", "suspend",
        ))
        number = draw.uniform(0.5, 14.0)
        if what == "jump":
            number = draw.choice((-3600.0, -5.0, 5.0, 30.0, 3600.0))
        found.append(Action(at, what, site, number))
        if what == "suspend" and draw.random() < 0.5:
            found.append(Action(at + number, "reactivate", site))
    if draw.random() < 0.12:
        found.append(Action(draw.uniform(0.6, calm), "cancel"))
    if draw.random() < 0.5:
        found.append(Action(draw.uniform(calm, calm + 10.0), "trigger"))
    if draw.random() < 0.4:
        found.append(Action(draw.uniform(2.0, calm + 5.0), "promote"))
    return tuple(sorted(found, key=lambda each: (each.at, each.what, each.whom)))
