r"""Fairness indices over one loss (or risk) of each site, f_1 .. f_n >= 0: how unequally the sites are served.

All take one scalar a site, so they tell nothing about a row. Conventions that all of them share:

- Shares of sites are exact: the worst 20 % of 7 sites are 1.4 sites, the second-worst one counting for 0.4.
- Order and ties do not matter: every index is a symmetric function of the losses.
- Losses that are all 0 are equal losses: ratios are 1, indices of inequality 0. A number above 0 over 0 is infinite.
- One site is equal to itself: ratios are 1, indices of inequality 0.

Ratios are ratios of means, so that equal losses give 1 whatever the shares (a Palma ratio of totals would give 1/4).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from models.basics import FloatArray, ProblemError
from models.fairness.ambiguity_set import RelativeSet
from models.geometry.capped_simplex import CappedSimplex
from models.losses.exponentials import log_sum_exp

_NEAR_ONE = 1e-6
"""How near to 1 an aversion is before the power mean is expanded around the geometric one."""


def relative_unfairness(losses: ArrayLike, alpha: float, beta: float) -> float:
    r"""``R_{A,B} = max_{a in A} <a, f> / min_{b in B} <b, f>`` with A = Delta_alpha, B = Delta_beta (RF Definition 1).

    The mean over the worst ``alpha`` of the sites over the mean over the best ``beta`` of them; in [1, infinity].
    ``ProblemError`` for losses that are no finite numbers at or above 0, and for alpha or beta outside (0, 1].
    """
    n = _losses(losses).shape[0]
    return unfairness_over(losses, CappedSimplex.of_share(n, alpha), CappedSimplex.of_share(n, beta))


def unfairness_over(losses: ArrayLike, worst: CappedSimplex, best: CappedSimplex) -> float:
    """``R_{A,B}`` for any two capped simplices A = ``worst`` and B = ``best``; below 1 where A lies low and B high.

    :class:`ProblemError` where they are over other sites than the losses.
    """
    values = _scaled(losses)
    for name, members in (("A", worst), ("B", best)):
        if members.size != values.shape[0]:
            raise ProblemError(f"{name} is over {members.size} sites, there are losses of {values.shape[0]}")
    return _ratio(worst.largest(values), best.smallest(values), values)


def twenty_twenty(losses: ArrayLike) -> float:
    """20:20 ratio: mean of the worst 20 % over mean of the best 20 %, ``R`` at (0.2, 0.2)."""
    return relative_unfairness(losses, 0.2, 0.2)


def palma(losses: ArrayLike) -> float:
    """Palma ratio: mean of the worst 10 % over mean of the best 40 %, ``R`` at (0.1, 0.4)."""
    return relative_unfairness(losses, 0.1, 0.4)


def fairness_discrepancy(losses: ArrayLike, phi: float, alpha: float, beta: float) -> float:
    """Relative fairness discrepancy ``max_A <a, f> - phi min_B <b, f>`` (RF Definition 2); 0 <= phi < 1."""
    values = _losses(losses)
    return RelativeSet.of_shares(values.shape[0], phi, alpha, beta).discrepancy(values)


def skewness(n_sites: int, phi: float, alpha: float, beta: float) -> float:
    """Skewness of ``Lambda_phi(Delta_alpha, Delta_beta)`` over ``n_sites`` (RF section 6), 1 for one point (1/n, ..).

    What the generalisation bound grows with (``models.fairness.generalisation``); see :meth:`RelativeSet.skewness`.
    """
    return RelativeSet.of_shares(n_sites, phi, alpha, beta).skewness()


def worst_share(losses: ArrayLike, share: float = 0.2) -> float:
    """Mean loss of the worst ``share`` of the sites: the largest."""
    values = _losses(losses)
    return CappedSimplex.of_share(values.shape[0], share).largest(values)


def best_share(losses: ArrayLike, share: float = 0.2) -> float:
    """Mean loss of the best ``share`` of the sites: the smallest."""
    values = _losses(losses)
    return CappedSimplex.of_share(values.shape[0], share).smallest(values)


def gini(losses: ArrayLike) -> float:
    r"""Gini coefficient ``sum_ij |f_i - f_j| / (2 n^2 mean)``, in [0, 1 - 1/n].

    Equal to ``1 - 2 int_0^1 l(x) dx`` of the Lorenz curve l; RF section 7 has that with the transformed curve, which
    would be too large by 1/2.
    """
    values = np.sort(_scaled(losses))
    n, total = values.shape[0], float(values.sum())
    if total == 0.0:
        return 0.0
    ranks = 2.0 * np.arange(1, n + 1) - n - 1.0
    return max(0.0, float(ranks @ (values / total)) / float(n))


def atkinson(losses: ArrayLike, aversion: float) -> float:
    r"""Atkinson index ``1 - e / mean`` with e the equally distributed equivalent of the losses, in [0, 1].

        e = (mean f^(1 - aversion))^(1 / (1 - aversion));   1: the geometric mean;   infinity: the least loss

    As in RF section 3.1, the index is taken of the losses themselves: e is the power mean that Atkinson (1970) defines
    for incomes, and a higher aversion looks more at the sites with the least loss. Aversion 0 gives 0; with an aversion
    of 1 or more, one loss of 0 among others gives 1. At infinity it is ``1 - 1/R`` at shares (1, 1/n). ``ProblemError``
    for an aversion that is no number at or above 0 (infinity is allowed).
    """
    values = _scaled(losses)
    if math.isnan(aversion) or aversion < 0:
        raise ProblemError(f"aversion must be a number at or above 0 (infinity allowed), got {aversion}")
    mean = float(values.mean())
    if mean == 0.0 or aversion == 0.0 or values.max() == values.min():
        return 0.0
    if math.isinf(aversion) or (values.min() == 0.0 and aversion >= 1.0):
        return 1.0 - float(values.min()) / mean
    power = 1.0 - aversion
    logs = np.log(values[values > 0.0] / mean)
    if abs(power) < _NEAR_ONE and logs.shape == values.shape:
        equivalent = math.exp(float(logs.mean()) + 0.5 * power * float(logs.var()))
    else:
        equivalent = math.exp((float(log_sum_exp(power * logs)) - math.log(values.shape[0])) / power)
    return min(max(1.0 - equivalent, 0.0), 1.0)


def lorenz_curve(losses: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Lorenz curve: share of sites x (n + 1,) and the share l(x) of all loss that the best x of them bear (n + 1,).

    From (0, 0) to (1, 1), straight between the points; the diagonal is equality (all losses 0 give it too).
    """
    values = np.sort(_scaled(losses))
    x = np.linspace(0.0, 1.0, values.shape[0] + 1)
    total = float(values.sum())
    if total == 0.0:
        return x, x.copy()
    curve = np.concatenate([[0.0], np.cumsum(values / total)])
    curve[-1] = 1.0
    return x, np.minimum(curve, x)


def transformed_lorenz_curve(losses: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """``l(x) - x/2`` of the Lorenz curve (RF section 7, Figure 4): easier to tell curves apart; ends at 1/2."""
    x, curve = lorenz_curve(losses)
    return x, curve - 0.5 * x


INDICES: Final[Mapping[str, Callable[[ArrayLike], float]]] = {
    "relative_unfairness": twenty_twenty,
    "twenty_twenty": twenty_twenty,
    "palma": palma,
    "gini": gini,
    "atkinson": lambda losses: atkinson(losses, 1.0),
    "atkinson_infinite": lambda losses: atkinson(losses, math.inf),
    "worst_share": worst_share,
    "best_share": best_share,
}
"""Indices that need nothing but the losses, by name: ``R`` at (0.2, 0.2), Atkinson at aversion 1, shares of 20 %."""


def get_index(name: str) -> Callable[[ArrayLike], float]:
    """Index by name; refuses a name that is not in :data:`INDICES`.

    :class:`ProblemError` names those that there are.
    """
    if name not in INDICES:
        raise ProblemError(f"there is no fairness index {name!r}; indices are {', '.join(sorted(INDICES))}")
    return INDICES[name]


def _losses(losses: ArrayLike) -> FloatArray:
    """The losses as a vector, refused where no index has a meaning."""
    try:
        values = np.asarray(losses, dtype=np.float64)
    except (TypeError, ValueError):
        raise ProblemError("losses must be one number for each site") from None
    if values.ndim != 1 or values.shape[0] == 0:
        raise ProblemError(f"losses must be one number for each of at least one site, got shape {values.shape}")
    if not np.isfinite(values).all():
        raise ProblemError(f"losses must be finite numbers, {int((~np.isfinite(values)).sum())} are not")
    if (values < 0).any():
        raise ProblemError(f"losses must be at or above 0, the least is {values.min():g}")
    return values


def _scaled(losses: ArrayLike) -> FloatArray:
    """The losses in units of the largest: what no index of inequality depends on, and no sum overflows."""
    values = _losses(losses)
    largest = float(values.max())
    return values / largest if largest > 0.0 else values


def _ratio(numerator: float, denominator: float, losses: FloatArray) -> float:
    """Ratio of two means of the losses, with 0/0 = 1 and x/0 infinite; equal losses give 1 to the last digit."""
    if losses.max() == losses.min() or (numerator == 0.0 and denominator == 0.0):
        return 1.0
    return numerator / denominator if denominator > 0.0 else math.inf
