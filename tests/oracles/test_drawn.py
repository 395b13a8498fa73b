"""Sixty drawn problems held to the oracle; ``make oracle`` draws more."""

from __future__ import annotations

import pytest

from tests.oracles.wasserstein.checks import faults_of


@pytest.mark.parametrize("seed", range(60))
def test_every_claim_holds(seed: int) -> None:
    assert not faults_of(seed), f"replay with: make oracle SEED={seed}"
