"""What a plan of a seed may have beside the method: each a share of the seeds, drawn apart from what befalls them."""

from __future__ import annotations

import random
from typing import Any

import nkeys

AUDITOR = nkeys.from_seed(nkeys.encode_seed(bytes(range(32)), nkeys.PREFIX_BYTE_USER)).public_key.decode()
"""Public key of who is told what the plants of a cohort open."""
SHARES = {
    "plain": 0.4, "weeks": 0.15, "waiting": 0.15, "tuning": 0.07, "noise": 0.07, "auditor": 0.08, "all classes": 0.08,
}
_ALSO_WEEKS = ("waiting", "auditor", "all classes", "coupling", "tuning")
_SINGLE = ("level-bundle", "level-bundle-plain")


def draw_mode(seed: int) -> str:
    """The mode of a seed."""
    mode = random.Random(f"{seed}/mode").choices(tuple(SHARES), tuple(SHARES.values()))[0]
    # Both have three classes: all as one problem, or planes one against the rest that are coupled at the end.
    return "coupling" if mode == "all classes" and random.Random(f"{seed}/coupling").random() < 0.25 else mode


def changes_of(mode: str, draw: random.Random, reveal: str, method: str) -> dict[str, Any]:
    """What a mode changes in the plan of a seed with this mode of sums or answers, and this method."""
    changes: dict[str, Any] = {}
    if mode == "weeks":
        changes = {"method": draw.choice(_SINGLE) if reveal == "each site" else "cohort-bundle"}
    elif mode == "waiting":
        changes = {
            "reveal": "each site", "method": draw.choice(_SINGLE), "max_rounds": draw.randint(4, 10),
            "waiting": {
                "enough": draw.choice((0.3, 0.5, 1.0)), "times": draw.choice((1.0, 1.25, 3.0)),
                "seconds": draw.choice((0.05, 0.2, 1.0)), "furthest_behind": draw.choice((1, 2, 50)),
                "sites": {"plant-1": draw.choice((0.0, 1.0))} if draw.random() < 0.2 else {},
            },
        }
    elif mode == "tuning":
        robust = {"each site": (*_SINGLE, "fdr-sm"), "sums": ("cohort-bundle", "fdr-sm")}[reveal]
        changes = {
            "method": method if method in robust else draw.choice(robust),
            "max_rounds": draw.randint(5, 8),
            "tuning": {"radius": [0.5, 2.0], "folds": 2, "budget": 3.0, "every": draw.choice((1, 2))},
        }
    elif mode == "noise":
        noise = {"epsilon": 1000.0, "rounds": 3, "within": 6.0, "confidence": 0.999}
        changes = {"reveal": "sums", "method": "level-bundle-plain", "noise": noise}
    elif mode == "auditor":
        changes = {
            "reveal": "sums", "method": "cohort-bundle", "auditor": AUDITOR,
            "audit": draw.choice(("contradictions", "every round")),
        }
    elif mode in ("all classes", "coupling"):
        changes = {"method": draw.choice(_SINGLE) if reveal == "each site" else "cohort-bundle"}
        if mode == "coupling":
            changes |= {"max_rounds": draw.randint(4, 8), "tuning": "auto"}
    changes["warm_start"] = mode == "weeks" or mode in _ALSO_WEEKS and draw.random() < 0.4
    return changes


_WIDE_FROM, _WIDE_SHARE = 70_000, 0.4
_WIDE_MODES = ("plain", "weeks", "waiting", "auditor", "all classes")
"""Modes that say nothing of the problem themselves."""


def widened(seed: int, mode: str, stated: dict[str, Any]) -> dict[str, Any]:
    """A plan of this mode with another problem, where the seed draws one: most things go with most others.

    From seed 70,000 on, so that earlier ones are what they were.
    """
    draw = random.Random(f"{seed}/wide")
    if seed < _WIDE_FROM or mode not in _WIDE_MODES or draw.random() > _WIDE_SHARE:
        return stated
    spec = stated["spec"] | {
        "transport_norm": draw.choice(("l1", "l2", "linf")),
        "radius": {"rule": "fixed", "value": draw.choice((0.0, 1e-4, 0.01, 0.3, 2.0))},
        "label_flip_cost": draw.choice((0.05, 0.2, 1.0, 5.0, 1000.0)), "fit_intercept": draw.random() < 0.8,
    }
    if draw.random() < 0.4:
        spec["lift"] = {"kind": "spline", "segments": draw.choice((2, 3, 6))}
    if mode != "all classes":
        spec["loss"] = draw.choice(("hinge", "hinge", "smooth_hinge", "logistic"))
        if spec["loss"] == "hinge" and draw.random() < 0.4:
            spec["support"] = "sensor_ranges"
    rounds = max(stated["max_rounds"], draw.choice((2, 4, 8, 15)))
    return stated | {"spec": spec, "gap": draw.choice((1e-1, 1e-2, 1e-3)), "max_rounds": rounds}
