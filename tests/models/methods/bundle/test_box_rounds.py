"""A box costs the level bundle few rounds: its cuts follow the signs of the weights, as the norm does without one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.basics import TransportNorm
from models.geometry.supports import BoxSupport
from models.losses.catalogue import get_loss
from models.problem import RobustSpec, SiteProblem
from models.simulation.federation import train


def skewed_sites(loss: str, norm: TransportNorm, radius: float) -> dict[str, SiteProblem]:
    """Four sites of rows near one wall of [0, 1], as sensors' readings are, that hang together."""
    draw, judged = np.random.default_rng(5), get_loss(loss)
    mixed = draw.normal(size=(160, 3)) @ draw.normal(size=(3, 12)) + 0.7 * draw.normal(size=(160, 12))
    features = np.exp(0.8 * mixed / mixed.std(axis=0))
    features = (features - features.min(axis=0)) / (features.max(axis=0) - features.min(axis=0))
    score = mixed @ draw.normal(size=12)
    score = (score - score.mean()) / score.std() + 0.5 * draw.normal(size=160)
    labels = np.where(score > 0, 1.0, -1.0) if judged.task == "classification" else score
    spec = RobustSpec(radius, 1.0, norm, BoxSupport(np.zeros(12), np.ones(12)), loss=judged)
    return {f"site-{g}": SiteProblem(features[g::4], labels[g::4], spec) for g in range(4)}


@pytest.mark.parametrize(
    ("loss", "norm", "radius"), [("hinge", "linf", 0.03), ("epsilon_insensitive", "linf", 0.05)]
)
def test_a_box_takes_at_most_twice_the_rounds_of_no_box(loss: str, norm: TransportNorm, radius: float) -> None:
    sites = skewed_sites(loss, norm, radius)
    free = {name: replace(each, spec=replace(each.spec, support=None)) for name, each in sites.items()}
    boxed, unbounded = (train(each, gap=1e-3, max_rounds=80) for each in (sites, free))
    assert max(boxed.certificate.gap, unbounded.certificate.gap) <= 1e-3
    assert boxed.n_rounds <= 2 * unbounded.n_rounds
