r"""Training where all sites' rows are in this process: the federated objective solved at once, and proved.

The answer carries the same certificate as a federated run: the upper bound is the exact worst-case risk at the weights,
the lower bound follows from row weights ``keep, flip`` (N,) by arithmetic. For any of them with
``keep + flip <= 1`` and ``room_g = radius_g - kappa_g mean(flip) >= 0``,

    F(u) >= c + <q, u> + Z ||u||_*,   c = sum_g a_g mean(keep + flip),   q = sum_g a_g mean (flip - keep) y (x, 1),

``Z = sum_g a_g room_g`` (see ``prox.hinge.certify``). The row weights of the solver are corrected until q is covered
by Z and has no intercept part, so that c is a bound everywhere; what is left at working precision is paid for.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from models.basics import FloatArray, ProblemError
from models.centralised.feature_scaling import Units
from models.centralised.hinge_solver import PooledPoint, PooledProblem, solve_pooled
from models.cuts.certificate import check_certificate
from models.geometry.norms import vector_norm
from models.geometry.projections import least_change
from models.losses.classification import Hinge
from models.methods.catalogue import METHODS
from models.problem import Certificate, SiteProblem, Status
from models.simulation.federation import Round, Training, server_problem
from models.validation import check_site_problem
from models.worst_case.risk import site_risk

_EPS = float(np.finfo(np.float64).eps)
_CORRECTIONS = 4  # each clips anew; the third or fourth changes digits only
_FAR = 1e3  # times the solution: how far a slope of rounding's size is charged
_ROUNDING = 64 * _EPS  # share of the rows' sizes that sums over them may be off by
_HIDDEN = 1e-16
"""Radius, over the size of the rows, and share of rows that can be flipped, below which float64 does not see them."""


def train_pooled(
    sites: Mapping[str, SiteProblem],
    *,
    weights: Mapping[str, float] | None = None,
    gap: float = 1e-4,
    absolute_gap: float | None = None,
    tolerance: float = 1e-10,
) -> Training:
    r"""Minimise ``sum_g a_g r_g(w)`` by one interior point over all rows, as near to the optimum as float64 allows.

    Parameters as in :func:`~models.simulation.train`; unbounded support only. ``history`` has one entry, in which
    ``number`` is the number of iterations. ``tolerance`` is the relative gap at which the solver stops: far below
    ``gap`` costs little; a loose one serves where many fits are only compared. ``ProblemError`` where the problem has
    no meaning, has a support, or a loss other than the hinge.
    """
    terms = server_problem(sites, weights, METHODS["level-bundle"], {}, gap, absolute_gap=absolute_gap)
    for site in sites.values():
        check_site_problem(site)
        if not isinstance(site.spec.loss, Hinge):
            raise ProblemError(
                f"the pooled interior point is for the hinge loss, the loss is {site.spec.loss.name}; "
                "use a method of the catalogue"
            )
        if site.spec.support is not None:
            raise ProblemError("the pooled interior point is for unbounded support; use a method of the catalogue")
    site_weights = terms.weights
    units = Units.of_one_size(list(sites.values()))
    problem = _pooled(list(sites.values()), site_weights, units)
    found = solve_pooled(problem, tolerance)
    local = _stretched(problem, found.weights)
    upper, plane, risks = min(
        (
            _evaluated(units.back(candidate), sites, site_weights)
            for candidate in _candidates(problem, local)
        ),
        key=lambda evaluated: evaluated[0],
    )
    lower = min(_lower_bound(problem, found), upper)
    bounds = check_certificate(Certificate(upper, lower, scale=1.0))  # the hinge at zero weights
    status = Status.CERTIFIED if bounds.meets(gap, absolute_gap) else Status.STALLED
    history = (Round(found.iterations, bounds.upper, bounds.lower, bounds.gap, 0),)
    weights = {site.site_id: site.weight for site in terms.sites}
    return Training(plane, bounds, status, risks, weights, history, plane)


def _candidates(problem: PooledProblem, weights: FloatArray) -> list[FloatArray]:
    """The solver's weights and, without its rounding, the classifiers that look at no feature at all."""
    blind = np.zeros((3, weights.shape[0]))
    if weights.shape[0] > problem.n_features:
        blind[:, -1] = -1.0, 0.0, 1.0
    return [weights, *blind]


def _evaluated(
    plane: FloatArray, sites: Mapping[str, SiteProblem], site_weights: FloatArray
) -> tuple[float, FloatArray, dict[str, float]]:
    risks = {name: site_risk(plane, site).value for name, site in sites.items()}
    total = sum(share * risks[name] for name, share in zip(sites, site_weights, strict=True) if share > 0)
    return float(total), plane, risks


def _pooled(sites: list[SiteProblem], site_weights: FloatArray, units: Units) -> PooledProblem:
    signed, size = [], units.spread[0]
    for site in sites:
        rows = (site.features - units.centre) / size
        if site.spec.fit_intercept:
            rows = np.hstack([rows, np.ones((rows.shape[0], 1))])
        signed.append(rows * site.labels[:, None])
    counts = np.array([site.features.shape[0] for site in sites])
    index = np.repeat(np.arange(len(sites)), counts)
    counted = site_weights[index] > 0  # a site of weight 0 has no say
    # What rounding hides the solver need not see: the bounds are those of the radius and the cost as they are given.
    radius = np.array([site.spec.radius for site in sites]) / size
    cost = np.array([site.spec.label_flip_cost for site in sites]) / size
    cost = np.where(radius < _HIDDEN * cost, np.inf, cost)
    radius = np.where((radius < _HIDDEN) & np.isinf(cost), 0.0, radius)
    row_counts = np.concatenate([site.counts for site in sites])
    return PooledProblem(
        signed=np.vstack(signed)[counted],
        share=((site_weights / counts)[index] * row_counts)[counted],
        site=index[counted],
        radius=radius,
        label_flip_cost=cost,
        weight=site_weights,
        transport_norm=sites[0].spec.transport_norm,
        n_features=sites[0].features.shape[1],
    )


def _stretched(problem: PooledProblem, weights: FloatArray) -> FloatArray:
    """Where nothing is robust and the weights separate the rows, longer weights have no risk at all."""
    least = float((problem.signed @ weights).min())
    if problem.price.any() or least <= 0:
        return weights
    return np.asarray(weights * max(1.0, (1.0 + 1e-9) / least))


def _lower_bound(problem: PooledProblem, found: PooledPoint) -> float:
    keep, flip = _valid(problem, found.keep, found.flip)
    for _ in range(_CORRECTIONS):
        keep, flip = _corrected(problem, keep, flip, found.norm_dual)
    if problem.signed.shape[1] > problem.n_features:
        keep, flip = _balanced(problem, keep, flip)
    slope, norm_weight = _slope(problem, keep, flip), _norm_weight(problem, flip)
    excess = max(float(vector_norm(slope[: problem.n_features], problem.transport_norm)) - norm_weight, 0.0)
    height = float(problem.share @ (keep + flip))
    rest = abs(float(slope[problem.n_features :].sum()))  # of the intercept, rounding since the weights are balanced
    size = float(problem.share @ (keep + flip) * np.abs(problem.signed).max(initial=0.0))
    # Every row half kept and half flipped, as far as the radius pays for it, has no slope at all.
    halves = np.divide(2.0 * problem.radius, problem.label_flip_cost)
    bounds = [float(problem.weight @ np.minimum(1.0, np.where(problem.flips, halves, 0.0)))]
    if (support := float(problem.price.sum())) > 0:
        bounds.append(support / (support + excess) * (height - _charge(rest, found.weights)))
    if excess + rest <= _ROUNDING * size:
        bounds.append(height - _charge(excess + rest, found.weights))
    return max(bounds) * (1.0 - 8 * _EPS)


def _charge(tilt: float, weights: FloatArray) -> float:
    """What a slope of rounding's size can take off: it is charged far beyond the solution."""
    return tilt * _FAR * (1.0 + float(np.abs(weights).sum()))


def _slope(problem: PooledProblem, keep: FloatArray, flip: FloatArray) -> FloatArray:
    return np.asarray((problem.share * (flip - keep)) @ problem.signed)


def _flipped(problem: PooledProblem, flip: FloatArray) -> FloatArray:
    """``a_g mean(flip)`` of each site."""
    return np.asarray(np.bincount(problem.site, problem.share * flip, problem.weight.shape[0]), dtype=np.float64)


def _norm_weight(problem: PooledProblem, flip: FloatArray) -> float:
    buyers = problem.flips
    spent = np.where(buyers, problem.label_flip_cost, 0.0) * _flipped(problem, flip) if buyers.any() else 0.0
    return float(np.maximum(problem.price - spent, 0.0).sum())


def _valid(problem: PooledProblem, keep: FloatArray, flip: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Row weights clipped into their set: at or above 0, at most 1 in sum, flips within each site's radius."""
    keep, flip = np.maximum(keep, 0.0), np.maximum(flip, 0.0)
    total = np.maximum(keep + flip, 1.0)
    keep, flip = keep / total, flip / total
    buyers = problem.flips
    budget = np.where(buyers, problem.price / np.where(buyers, problem.label_flip_cost, 1.0), 0.0)
    spent = _flipped(problem, flip)
    scale = np.divide(budget, spent, out=np.ones_like(spent), where=spent > budget)
    return keep, flip * scale[problem.site]


def _corrected(
    problem: PooledProblem, keep: FloatArray, flip: FloatArray, norm_dual: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Nearest row weights, relative to their room, whose slope is the norm's dual, brought into its ball."""
    surplus, allowed = _slope(problem, keep, flip), _norm_weight(problem, flip)
    size = float(vector_norm(norm_dual, problem.transport_norm))
    surplus[: problem.n_features] -= norm_dual * (min(1.0, allowed / size) if size > 0 else 0.0)
    if not surplus.any():
        return keep, flip
    idle = np.maximum(1.0 - keep - flip, 0.0)
    room = np.minimum(keep, idle)
    change = least_change(problem.signed, room * problem.share**2, surplus)
    return _valid(problem, keep + room * problem.share * change, flip)


def _balanced(problem: PooledProblem, keep: FloatArray, flip: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Row weights with no intercept part: the heavier side is scaled down, which keeps them valid."""
    labels = problem.signed[:, -1]
    rising = np.where(labels > 0, flip, keep)
    falling = np.where(labels > 0, keep, flip)
    up, down = float(problem.share @ rising), float(problem.share @ falling)
    if up > down:
        rising = rising * (down / up)
    elif down > up:
        falling = falling * (up / down)
    return np.where(labels > 0, falling, rising), np.where(labels > 0, rising, falling)
