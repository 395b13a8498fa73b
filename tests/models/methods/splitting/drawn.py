"""Sites of two features whose rows are drawn."""

from __future__ import annotations

import numpy as np

from models.basics import TransportNorm
from models.geometry.supports import BoxSupport
from models.losses.catalogue import get_loss
from models.problem import RobustSpec, SiteProblem

Sites = dict[str, SiteProblem]


def drawn_sites(
    loss: str = "hinge",
    norm: TransportNorm = "l2",
    *,
    box: bool = False,
    seed: int = 0,
    rows: int = 8,
    count: int = 3,
    unit: float = 1.0,
) -> Sites:
    """Sites of two features whose planes differ; ``unit`` is the size of the targets."""
    random, judged = np.random.default_rng(seed), get_loss(loss)
    plane, classes = 2 * random.normal(size=2), judged.task == "classification"
    support = BoxSupport(np.zeros(2), np.ones(2)) if box else None
    spec = RobustSpec(0.05, 1.0 if classes else 10.0 / unit, norm, support, True, judged)
    sites = {}
    for g in range(count):
        features = random.uniform(size=(rows + g, 2))
        score = (features - 0.5) @ (plane + 0.5 * random.normal(size=2))
        noise = 0.3 * random.normal(size=rows + g)
        labels = np.where(score + noise > 0, 1.0, -1.0) if classes else unit * (0.5 + 0.3 * score + 0.1 * noise)
        sites[f"site-{g}"] = SiteProblem(features, labels, spec)
    return sites
