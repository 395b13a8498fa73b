"""Phi by RF eq. (8) from gradients alone: conjugate gradients are through after one exchange for each weight."""

from __future__ import annotations

import numpy as np
import pytest

from models.fairness.ambiguity_set import RelativeSet, balanced_phi
from models.methods.local_sgd.phi_choice import absorb, begin_choice, chosen_phi, probe, without_choice


@pytest.mark.parametrize("seed", range(4))
def test_the_phi_of_quadratic_losses_is_that_of_their_hessians(seed: int) -> None:
    random, n_sites, d = np.random.default_rng(seed), 5, 4
    halves = random.normal(size=(n_sites, d, d))
    hessians = halves @ halves.transpose(0, 2, 1) + 0.5 * np.eye(d)
    slopes, losses, point = random.normal(size=(n_sites, d)), random.uniform(1.0, 3.0, n_sites), random.normal(size=d)
    ambiguity = RelativeSet.of_shares(n_sites, 0.0, 0.4, 0.6)
    memory = begin_choice({"point": point, "losses": losses, "slopes": slopes}, ambiguity)
    exchanges = 0
    while memory["cg_left"] > 0:
        memory = absorb(memory, slopes + hessians @ (probe(memory) - point))
        exchanges += 1
    assert exchanges <= d
    pull = ambiguity.best.best(losses) @ slopes
    hessian = np.einsum("i,ipq->pq", ambiguity.worst.worst(losses), hessians)
    curvature = float(pull @ np.linalg.solve(hessian, pull))
    expected = balanced_phi(ambiguity.worst.largest(losses), ambiguity.best.smallest(losses), curvature)
    assert 0.1 < expected < 0.99 and chosen_phi(memory, ambiguity) == pytest.approx(expected, rel=1e-6)
    assert without_choice(memory).keys() == {"point", "losses", "slopes"}
