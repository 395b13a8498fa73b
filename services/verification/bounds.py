r"""The two bounds of one head, worked out again from its risks, cuts and multipliers by enclosed arithmetic.

Upper: ``max_{q in Q} <q, u>`` for the sites' risks u at the weights. Every mixture q >= 0 with sum 1 within ``radius``
of a, and every number t and z >= u - t, have ``<q, u> <= t + <q, z> <= t + <a, z> + radius ||z||_dual``, so whatever t
and z are found, what they prove holds.

Lower: take a mixture q of Q, multipliers y >= 0 whose sum over the cuts of site g is at most q_g, and sides s in
[-1, 1]^P. With c = <y, offset>, v = <y, slope> + s <y, swing>, Z = <y, norm_weight> + sum_g rest_g floor_g,

    F(w) >= c + <v, w> + Z ||w||_*     for all w (weak duality: cuts and floors are below the risks).

Only the w with F(w) <= U matter, U what F is at most at the weights: elsewhere F is above the bound anyway. What v
leaves is charged over these w alone:

- with Phi = sum_g q_g floor_g > 0, ``||w||_* <= U / Phi``, and every cut with a slope b in the intercept bounds it from
  one side: ``q_g (offset_j + <slope_j, w>) <= U``; from sums over cohorts none is beyond
  :data:`.charges.REACH`, for the bound is of the weights within it, so that a last digit of a rounded slope costs next
  to nothing;
- with Phi = 0, let t_g be the risk at the weights u and R the rows ``y_j (-slope_j, e_g)`` and ``rest_g (0, e_g)`` of
  the multipliers ``around``, c' and v' theirs. For x = (w - u, heights(w) - t), all slacks being at or above 0,
  ``L = ||R x||_1 <= 2 (U - c' - <v', u>) + |<v', w - u>|``. Any P with ``E = I - P R``, ``e = ||E||_inf < 1``, gives
  ``max|x| <= k L`` for ``k = max|P| / (1 - e)``, and of any slope v, from ``x = P R x + E x``,
  ``|<v, w - u>| <= p(v) L`` with ``p(v) = max|P' v| + e k ||v||_1``. Where ``p(v') < 1``, v takes off at most
  ``p(v) 2 (U - c' - <v', u>) / (1 - p(v'))``. P comes from a pseudo-inverse, and is not trusted. From sums ``c``
  less ``sum_p |v_p| REACH`` is a bound as well; so it is from single answers, of weights up to any number that is
  asked for, as for cuts that are flat but for rounding along weights which no row has a say in: over all weights they
  prove nothing.
"""

from __future__ import annotations

import numpy as np

from services.verification.certificate_file import CertificateFile, Head
from services.verification.charges import (
    REACH,
    along,
    intercept_charge,
    reach_charge,
    shares_of,
    sides_of,
    slope_of,
    tilt_charge,
)
from services.verification.enclosures import Floats, Interval, dot, down, greatest_norm, sums, times, up

DUAL = {"l1": "linf", "l2": "l2", "linf": "l1"}
_IN_BALL = 1e-12
"""By how much a mixture may miss the ball over the sites or the sum 1, relative to 1 and the radius."""
_OUT_OF_BALL = 1e-11
"""Share of the bound that is given up for it: more than three times as much."""
_HALVINGS = 80
"""Of a bracket: enough for all digits of float64."""


def upper_bound(certificate: CertificateFile, risks: Floats) -> float:
    """Upper bound on the risk of the worst mixture of ``risks`` (G,)."""
    centre, radius, norm = certificate.site_weights, certificate.mixture_radius, certificate.mixture_norm
    if radius == 0:
        return float(dot(centre, risks).high)
    best = float(risks.max())
    for level, lift in _levels(risks, centre, radius, norm):
        high = up(np.maximum(up(risks - level), lift))
        cost = times(np.array(radius), _exactly(float(greatest_norm(np.abs(high), DUAL[norm]))))
        best = min(best, float((_exactly(level) + dot(centre, high) + cost).high))
    return best


def _exactly(value: float) -> Interval:
    return Interval(np.array(value), np.array(value))


def _levels(risks: Floats, centre: Floats, radius: float, norm: str) -> list[tuple[float, Floats]]:
    """Numbers t, and the least that z should be at each site: where the best ones are, for the norm of the ball."""
    if norm == "linf":
        return [(float(t), np.where(centre >= radius, -np.inf, 0.0)) for t in risks]
    if norm == "l1":
        steps = (risks.max() - risks) / 2
        return [(float(risks.max() - step), np.full_like(risks, -step)) for step in steps]
    spread = float(risks.max() - risks.min())
    if spread == 0:
        return []
    least = float(risks.min())
    apart, low, high = (risks - least) / spread, 0.0, 1.0  # in [0, 1], however near the risks are to one another
    while float(np.linalg.norm(_on_simplex(centre + high * apart)[0] - centre)) < radius and high < 1e12:
        high *= 4.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        inside = float(np.linalg.norm(_on_simplex(centre + middle * apart)[0] - centre)) < radius
        low, high = (middle, high) if inside else (low, middle)
    _, threshold = _on_simplex(centre + high * apart)
    return [(least + threshold * spread / high, -centre * spread / high)]


def _on_simplex(values: Floats) -> tuple[Floats, float]:
    """Nearest mixture to ``values`` (G,), and the threshold that is taken off them."""
    ordered = np.sort(values)[::-1]
    thresholds = (np.cumsum(ordered) - 1.0) / np.arange(1, values.shape[0] + 1)
    threshold = float(thresholds[np.flatnonzero(ordered > thresholds)[-1]])
    return np.maximum(values - threshold, 0.0), threshold


def floors(certificate: CertificateFile, head: Head) -> Floats:
    """Largest norm weight seen of each site, (G,): its risk is nowhere below that times the norm."""
    found = np.zeros(len(certificate.site_ids))
    np.maximum.at(found, head.site, head.norm_weight)
    return found


def norm_at(weights: Floats, transport_norm: str) -> Interval:
    """Enclosure of ``||w||_*`` of weights (P,): what it is at most, and that less what rounding can have added."""
    high = float(greatest_norm(np.abs(weights), DUAL[transport_norm]))
    low = high * (1.0 - 8 * (weights.shape[0] + 8) * 2.0**-53) - 1e-300
    return Interval(np.maximum(down(np.array(low)), 0.0), np.array(high))


def heights(certificate: CertificateFile, head: Head) -> tuple[Interval, Interval]:
    """What the cuts (m,) and the floors (G,) say of the sites' risks at the weights."""
    weights, p = head.weights, head.weights.shape[0] - int(certificate.fit_intercept)
    norm = norm_at(weights[:p], certificate.transport_norm)
    cuts = Interval(head.offset, head.offset) + dot(head.slope, weights) + times(head.norm_weight, norm)
    if head.swing.shape[1]:
        cuts = cuts + dot(head.swing, np.abs(weights[:p]))
    return cuts, times(floors(certificate, head), norm)


def lower_bound(certificate: CertificateFile, head: Head, upper: float, *, within: float = np.inf) -> float:
    """Lower bound on the least risk, 0 where nothing is proven: no risk is below 0.

    ``within``: of weights up to this in absolute value; from sums up to :data:`.charges.REACH` at most. ``upper``: what
    the risk of the worst mixture is at most at the weights, each site's at least what its cuts say.
    """
    mixture, left = _mixture(certificate, head.mixture)
    if mixture is None:
        return 0.0
    upper = float(up(up(np.array(upper * (2.0 - left)))))
    p, floor = head.weights.shape[0] - int(certificate.fit_intercept), floors(certificate, head)
    cuts, rest = shares_of(head, head.multipliers, mixture)
    sides = sides_of(head, cuts, p)
    constant, slope = sums(cuts, head.offset), slope_of(head, cuts, sides, p)
    carried = float((sums(cuts, head.norm_weight) + sums(rest, floor)).low)
    support = float(sums(mixture, floor).low)
    within = min(within, REACH) if certificate.members else within
    if support > 0:
        steep = float(greatest_norm(slope.size[:p], certificate.transport_norm))
        reach = float(up(np.array(upper / support)))
        excess = max(float(up(np.array(steep - carried))), 0.0)
        charge = float(up(np.array(excess * reach)))
        if certificate.fit_intercept:
            charge += intercept_charge(certificate, head, cuts, slope, mixture, upper, reach, within=within)
        bound = down(down(constant.low) - up(np.array(charge)))
    else:
        if head.norm_weight.any():
            return 0.0
        charge = tilt_charge(certificate, head, slope, sides, mixture, upper) if slope.size.any() else 0.0
        bound = down((constant + along(slope, head.weights)).low - charge)
        if np.isfinite(within):
            bound = max(bound, down(constant.low - reach_charge(slope, within)))
    return max(0.0, float(down(left * bound))) if np.isfinite(bound) else 0.0


def _mixture(certificate: CertificateFile, mixture: Floats) -> tuple[Floats | None, float]:
    """The mixture if it is one of Q, and the share of the bound that it proves."""
    centre, radius = certificate.site_weights, certificate.mixture_radius
    if (mixture < 0).any():
        return None, 0.0
    if radius == 0:
        return (mixture if np.array_equal(mixture, centre) else None), 1.0
    change = dot(np.stack([mixture, centre], axis=1), np.array([1.0, -1.0])).size
    missed = dot(np.concatenate([mixture, centre]), np.repeat([1.0, -1.0], centre.shape[0])).size
    room = _IN_BALL * min(1.0, radius)
    inside = greatest_norm(change, certificate.mixture_norm) <= radius + room and float(missed) <= room
    return (mixture if inside else None), 1.0 - _OUT_OF_BALL
