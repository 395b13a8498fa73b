"""Single answers whose cuts are flat but for rounding along weights that no row has a say in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from services.verification.bounds import upper_bound
from services.verification.certificate_file import CertificateFile
from services.verification.charges import REACH
from services.verification.proof import NotProvenError, Proof, proven_lower, verify
from tests.services.verification.test_tilt_charge import one_site


def claimed(lower: float, weights: list[float], fall: float = 1e-17) -> CertificateFile:
    """Two cuts that meet at a risk of .9, and along the second weight fall by rounding."""
    half = np.full(2, 0.5)
    slope = np.array([[1.0, -fall], [-1.0, -fall]])
    certificate, head = one_site(slope, np.full(2, 0.9), np.array(weights), half, half)
    gap = (head.upper - lower) / head.upper
    return replace(certificate, heads=(replace(head, lower=lower),), lower=lower, upper=head.upper, gap=gap)


def said_of_weights(proof: Proof, within: int = 4096) -> list[str]:
    return [line for line in proof.checked if f"at most {within} " in line]


def test_what_a_run_claims_is_proven_of_weights_within_the_reach_and_said_to_be() -> None:
    proof = verify(claimed(0.9, [0.0, 3.0]))
    assert proof.lower == pytest.approx(0.9, abs=1e-9) and proof.condition == ""
    assert said_of_weights(proof) == [
        "lower bound: 2 cuts and their multipliers, by weak duality, in interval arithmetic; "
        "for weights of at most 4096 in absolute value: no row has a say in some, and cuts are rounded"
    ]


def test_what_falls_by_more_than_rounding_is_not_proven() -> None:
    with pytest.raises(NotProvenError, match="lower bound said to be 0.9; what is proven is 0.89"):
        verify(claimed(0.9, [0.0, 3.0], fall=1e-6))


@pytest.mark.parametrize(
    ("far", "within"), [(1.0, 4096), (1.0 + 2.0**-52, 8192), (2.0, 8192), (2.001, 16384), (1e4, 67108864)]
)
def test_of_weights_beyond_the_reach_it_is_proven_up_to_the_next_power_of_two(far: float, within: int) -> None:
    """Whatever side they are on."""
    for side in (far, -far):
        (said,) = said_of_weights(verify(claimed(0.9, [0.0, side * REACH])), within)
        assert said.endswith("in absolute value: no row has a say in some, and cuts are rounded")


def test_what_falls_up_to_there_is_charged_up_to_there() -> None:
    fall = 1e-12
    assert proven_lower(claimed(0.9, [0.0, REACH], fall)) == pytest.approx((0.9 - fall * REACH,), abs=1e-11)
    assert proven_lower(claimed(0.9, [0.0, 3 * REACH], fall)) == pytest.approx((0.9 - 4 * fall * REACH,), abs=1e-11)


def test_where_it_is_proven_of_all_weights_no_reach_is_said() -> None:
    assert not said_of_weights(verify(claimed(0.0, [0.0, 3.0])))
    bounding = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1e-6], [0.0, -1e-6]])
    shares = np.array([0.25 + 1e-10, 0.25 - 1e-10, 0.2, 0.2])
    certificate, head = one_site(bounding, np.full(4, 0.9), np.zeros(2), shares, shares)
    proven = replace(certificate, heads=(replace(head, lower=0.8),), lower=0.8, gap=1.0 / 9.0)
    assert not said_of_weights(verify(proven))


def test_a_risk_of_zero_is_zero() -> None:
    """Enclosed arithmetic leaves the least of all numbers in place of a sum of zeros."""
    flat, zeros = np.zeros((2, 1)), np.zeros(2)
    certificate, head = one_site(flat, zeros, np.ones(1), np.full(2, 0.5), np.full(2, 0.5))
    sites = ("plant-0", "plant-1")
    two = replace(
        certificate, site_ids=sites, site_weights=np.full(2, 0.5), radii=zeros, label_flip_costs=np.ones(2), gap=0.0,
        mixture_radius=0.1, heads=(replace(head, risks=zeros, mixture=np.full(2, 0.5), site=np.arange(2)),),
    )
    for radius in (0.0, 0.1):
        proof = verify(replace(two, mixture_radius=radius))
        assert proof.upper <= 1e-300 and proof.lower == proof.gap == 0.0


def test_what_is_proven_of_a_lower_bound_is_told_without_a_claim_above_it() -> None:
    """A part of what is claimed, as it is proven; and no more than is claimed."""
    (low,) = proven_lower(claimed(0.95, [0.0, 3.0], fall=1e-6))
    assert 0.89 < low < 0.9
    assert proven_lower(claimed(0.5, [0.0, 3.0], fall=1e-9)) == pytest.approx((0.5,))


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_risks_that_are_next_to_alike_have_a_worst_mixture(norm: str) -> None:
    """As of zero weights, where every plant has a risk of 1 but for rounding."""
    draw, flat = np.random.default_rng(0), np.zeros((2, 1))
    for _ in range(200):
        count = int(draw.integers(2, 6))
        ones, shares = np.ones(count), draw.uniform(0.2, 1.0, count)
        certificate, _head = one_site(flat, np.ones(2), np.ones(1), np.full(2, 0.5), np.full(2, 0.5))
        certificate = replace(
            certificate, site_ids=tuple("abcde"[:count]), site_weights=shares / shares.sum(), radii=0.0 * ones,
            label_flip_costs=ones, mixture_norm=norm, mixture_radius=float(draw.choice((0.1, 0.5))),
        )
        risks = 1.0 - draw.integers(0, 20, count) * 2.0**-53
        assert risks.min() <= upper_bound(certificate, risks) <= risks.max()
