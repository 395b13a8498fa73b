"""What the vectors of a tuning give away, of each of its lifts, and those of a training of planes after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from models.basics import FloatArray
from models.losses.catalogue import LossName
from models.methods.catalogue import get_method
from services.site_agent.rules.policy import SitePolicy
from tests.attacks import finding
from tests.attacks.gated_plants import Plant, dealt, honest_run, stacked
from tests.attacks.tuned_plants import TunedPlant, honest_tuning

TUNINGS: Final[dict[str, LossName]] = {
    "tuning": "hinge", "tuning-classes": "logistic", "tuning-rare": "logistic", "tuning-rare-products": "logistic",
    "tuning-targets": "pinball", "tuning-targets-smooth": "huber", "tuning-several": "logistic",
}
"""By name their losses; what has targets tells the last sensor by the others; several classes are three."""
RARE: Final = {"tuning-rare": (900, 1), "tuning-rare-products": (100_000, 1_000)}
"""Rows by class that the coordinator goes by: few rare ones, or as many as products beside splines take."""


def tuned_group(
    features: FloatArray, labels: FloatArray, name: str, mode: str, n_sites: int, *, draw: int = 0,
    policy: SitePolicy | None = None,
) -> list[TunedPlant]:
    """Plants after a tuning and a training, both of which may have ended by a refusal."""
    if TUNINGS[name] in ("pinball", "huber"):
        features, labels = features[:, :-1], features[:, -1]
    method = "cohort-bundle" if mode == "sum" else "level-bundle"
    sites = dealt(features, labels, n_sites, get_method(method), TUNINGS[name])
    plants = {site: Plant(problem, policy or SitePolicy(), draw) for site, problem in sites.items()}
    tuned = honest_tuning(plants, on_sums=mode == "sum", rows_by_class=RARE.get(name), several=name == "tuning-several")
    honest_run(plants, method, cohorts={"all": tuple(plants)} if mode == "sum" else None)
    return list(tuned.values())


def rows_found(group: Sequence[TunedPlant], mode: str) -> dict[str, int]:
    """Rows by attack: of the sums over all plants, or of single plants together; counted for each lift that shows one.

    Rows whose readings are all at the low ends of their ranges are left out.
    """
    counts = {"pairwise": 0, "differences": 0}
    for together in [group] if mode == "sum" else [[plant] for plant in group]:
        for lift in range(len(together[0].lifts)):
            rows = np.vstack([plant.rows(lift) for plant in together])
            vectors = _vectors(together, lift)
            told = rows[:, :-1].any(axis=1)  # else it is the direction of the intercept, whichever row is looked for
            counts["pairwise"] += len(finding.pairwise(vectors, rows[told]))
            counts["differences"] += len(finding.differences(vectors, rows[told]))
    return counts


def _vectors(together: Sequence[TunedPlant], lift: int) -> FloatArray:
    """Vectors (M, D) of a lift: of the tuning, and for planes those of the training."""
    found = []
    for sent in ([plant.sent[lift] for plant in together], [plant.plant.sent for plant in together]):
        complete = min(len(each) for each in sent)
        found.append(stacked([each[:complete] for each in sent]))
    return np.vstack([each for each in (found if together[0].lifts[lift] is None else found[:1]) if each.size])
