"""What a slope that multipliers leave takes off a bound without a norm: small cut models whose least is known."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.basics import FloatArray
from services.verification.bounds import lower_bound
from services.verification.certificate_file import CertificateFile, Head
from services.verification.charges import REACH, _passed, reach_charge, slope_of
from services.verification.enclosures import Interval
from tests.services.verification.drawn import RUN


def one_site(
    slope: FloatArray, offset: FloatArray, weights: FloatArray, multipliers: FloatArray, around: FloatArray
) -> tuple[CertificateFile, Head]:
    """A certificate of one site without a norm, radius or intercept, and its head."""
    count = offset.shape[0]
    risk = float(max(0.0, (offset + slope @ weights).max()))
    head = Head(
        weights=weights, risks=np.array([risk]), mixture=np.ones(1), site=np.zeros(count, dtype=np.intp), offset=offset,
        slope=slope, norm_weight=np.zeros(count), swing=np.zeros((count, 0)), multipliers=multipliers, around=around,
        upper=risk, lower=0.0,
    )
    certificate = CertificateFile(
        run_id=RUN, site_ids=("plant-0",), site_weights=np.ones(1), radii=np.zeros(1), label_flip_costs=np.ones(1),
        lipschitz=1.0, members=(), transport_norm="l2", fit_intercept=False, mixture_norm="l2", mixture_radius=0.0,
        heads=(head,), upper=risk, lower=0.0, gap=1.0,
    )
    return certificate, head


def test_it_is_what_is_far_along_it_and_not_elsewhere() -> None:
    """Two weights: steep cuts in the first, which leave a slope of 1e-10, and nearly flat ones in the second."""
    slope = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1e-6], [0.0, -1e-6]])
    multipliers = np.array([0.25 + 1e-10, 0.25 - 1e-10, 0.2, 0.2])
    certificate, head = one_site(slope, np.full(4, 0.9), np.zeros(2), multipliers, multipliers)
    assert 0.9 * 0.9 - 1e-8 <= lower_bound(certificate, head, 0.9) <= 0.9 * 0.9


@given(seed=st.integers(0, 2**32 - 1), n_weights=st.integers(1, 4))
def test_multipliers_near_the_best_ones_prove_no_more_than_the_least(seed: int, n_weights: int) -> None:
    """The least is at 0, where the first D + 1 cuts meet: their shares y are the best multipliers, and leave no slope.

    A share of another cut, one that is higher at the weights, lifts what the multipliers say there above the least.
    """
    random = np.random.default_rng(seed)
    shares = random.dirichlet(np.full(n_weights + 1, 3.0))
    meeting = random.normal(size=(n_weights + 1, n_weights))
    meeting -= shares @ meeting
    spare = 10.0 ** random.uniform(-1, 1.5) * random.normal(size=(6, n_weights))
    slope, offset = np.vstack([meeting, spare]), np.concatenate([np.ones(n_weights + 1), random.uniform(0, 0.99, 6)])
    best = np.concatenate([shares, np.zeros(6)])
    best[:-6] *= 1.0 - 1e-3  # what the floor has bounds the height
    weights = 10.0 ** random.uniform(-3, -1) * random.normal(size=n_weights)
    highest = np.eye(offset.shape[0])[int(np.argmax(offset + slope @ weights))]
    part = 10.0 ** random.uniform(-4, -0.02)
    moved = (1 - part) * best + part * highest
    certificate, head = one_site(slope, offset, weights, moved, best if random.random() < 0.5 else moved)
    upper = float(head.risks[0])
    assert lower_bound(certificate, head, upper) <= 1.0 + 1e-12
    certificate, exact = one_site(slope, offset, weights, best, best)
    assert lower_bound(certificate, exact, upper) >= 0.999 - 1e-9


def test_from_sums_a_slope_takes_off_no_more_than_it_can_within_the_reach() -> None:
    """Along the second weight all cuts fall by 1e-9: of all weights nothing is proven, of those in reach all."""
    slope, half = np.array([[1.0, -1e-9], [-1.0, -1e-9]]), np.full(2, 0.5)
    certificate, head = one_site(slope, np.full(2, 0.9), np.array([0.0, 3.0]), half, half)
    assert lower_bound(certificate, head, 0.9) == 0.0
    summed = replace(certificate, members=(("plant-0", "plant-1", "plant-2"),))
    assert lower_bound(summed, head, 0.9) == pytest.approx(0.9 - 1e-9 * REACH, abs=1e-11)
    assert lower_bound(certificate, head, 0.9, within=REACH) == lower_bound(summed, head, 0.9)


@given(seed=st.integers(0, 2**32 - 1), width=st.sampled_from([0.0, 1e-12, 1.0]), slack=st.sampled_from([0.0, 0.1]))
def test_what_passes_is_of_either_sign_and_of_every_slope_in_the_interval(
    seed: int, width: float, slack: float
) -> None:
    random = np.random.default_rng(seed)
    slope, inverse, around = random.normal(size=2), random.normal(size=(2, 3)), width * random.uniform(size=2)
    found = _passed(Interval(slope - around, slope + around), inverse, slack)
    ends = [slope + np.array(side) * around for side in ((-1, -1), (-1, 1), (1, -1), (1, 1))]
    most = max(np.abs(end @ inverse).max() for end in ends)
    length = np.abs(np.vstack(ends)).max(axis=0).sum()
    assert most - 1e-14 <= found - slack * length <= most + 2 * width * np.abs(inverse).sum() + 1e-12


@given(seed=st.integers(0, 2**32 - 1))
def test_the_exact_sum_of_slopes_and_swings_lies_inside(seed: int) -> None:
    """The intercept has no swing; with no slope, the swings' own rounding is all there is."""
    random = np.random.default_rng(seed)
    cuts, sides = random.uniform(size=3), random.uniform(-1, 1, 2)
    _, head = one_site(random.integers(0, 2) * random.normal(size=(3, 3)), np.ones(3), np.ones(3), cuts, cuts)
    head = replace(head, swing=random.uniform(size=(3, 2)))
    found = slope_of(head, cuts, sides, 2)
    for place in range(3):
        exact = sum((Fraction(y) * Fraction(v) for y, v in zip(cuts, head.slope[:, place], strict=True)), Fraction(0))
        if place < 2:
            exact += Fraction(sides[place]) * sum(
                (Fraction(y) * Fraction(v) for y, v in zip(cuts, head.swing[:, place], strict=True)), Fraction(0)
            )
        assert Fraction(found.low[place]) <= exact <= Fraction(found.high[place])
        assert found.high[place] - found.low[place] < 1e-13


@given(slope=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12), within=st.floats(1.0, 1e9))
def test_what_a_slope_takes_off_up_to_a_reach_is_never_counted_too_low(slope: list[float], within: float) -> None:
    """Exactly it is ``sum_p |v_p| within``; beyond it no more than rounding is charged."""
    found = reach_charge(Interval(np.array(slope), np.array(slope)), within)
    exact = sum((abs(Fraction(each)) for each in slope), Fraction(0)) * Fraction(within)
    assert exact <= Fraction(found) <= exact * (1 + Fraction(1, 10**12)) + Fraction(1, 10**290)
