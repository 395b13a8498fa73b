"""What a certificate's cuts say at its weights: they refute a risk below them, and stand for one that is missing."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from services.verification.certificate_file import CertificateFile
from services.verification.proof import RefutedError, verify
from tests.services.verification.test_hostile_certificates import told


def answered(
    risks: list[float], cuts: list[tuple[int, float, list[float], float]], weights: list[float]
) -> CertificateFile:
    """A certificate that claims next to nothing: sites of equal weights told these risks and cuts."""
    shares = [1.0 / len(risks)] * len(risks)
    certificate, head = told(cuts, [0.0] * len(cuts), shares=shares, weights=weights)
    loose = replace(head, risks=np.array(risks), upper=1e9, lower=0.0)
    return replace(certificate, heads=(loose,), upper=1e9, radii=np.ones(len(risks)))


@pytest.mark.parametrize(("slope", "refuted"), [(1.0, True), (1e6, False)])
def test_a_cut_above_the_risk_by_what_large_terms_leave_refutes_nothing(slope: float, refuted: bool) -> None:
    """The cut is .6 and the risk .5; of terms of a million that cancel a tenth may be rounding."""
    certificate = answered([0.5], [(0, 0.6, [slope, -slope], 0.0)], [1.0, 1.0])
    if refuted:
        with pytest.raises(RefutedError, match="plant-0 answered a risk that its own cuts refute"):
            verify(certificate)
    else:
        assert verify(certificate).upper >= 0.5


@pytest.mark.parametrize("site", [0, 1])
def test_a_cut_is_held_to_the_risk_of_its_own_site(site: int) -> None:
    """However large the risk of the other is."""
    risks = [1e6, 1e6]
    risks[site] = 0.5
    certificate = answered(risks, [(site, 0.6, [0.0], 0.0), (1 - site, 0.6, [0.0], 0.0)], [0.0])
    with pytest.raises(RefutedError, match=f"plant-{site} answered a risk that its own cuts refute"):
        verify(certificate)
    assert verify(answered([0.7, 1e6], [(0, 0.6, [0.0], 0.0), (1, 0.6, [0.0], 0.0)], [0.0])).upper >= 5e5


@pytest.mark.parametrize("seed", range(8))
def test_a_risk_that_is_missing_counts_for_no_less_than_its_highest_cut(seed: int) -> None:
    """By exact arithmetic, also where large terms cancel: what is proven is an upper bound of the cuts."""
    draw = np.random.default_rng(seed)
    slope, weights = draw.normal(size=6) * 1e6, draw.normal(size=6)
    offset = 1.0 - float(slope @ weights)
    exact = Fraction(offset) + sum(
        (Fraction(a) * Fraction(b) for a, b in zip(slope.tolist(), weights.tolist(), strict=True)), Fraction(0)
    )
    cuts = [(0, offset, slope.tolist(), 0.0), (0, 0.5, [0.0] * 6, 0.0)]
    proof = verify(answered([float("nan")], cuts, weights.tolist()))
    assert exact <= Fraction(proof.upper) <= exact + Fraction(1, 10**6)
    assert any("absent at the end, it counts by its cuts" in line for line in proof.not_checked)
