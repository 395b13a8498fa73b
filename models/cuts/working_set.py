"""Which cuts of many a program starts with, and which it has to take in: the solution is that of all of them.

Of the cuts of hundreds of sites and tens of rounds few hold a solution up. A program over the newest cuts, those that
counted in the last solutions, and the highest of each site at the centre has its solution; a cut of the rest that lies
above its site's height there by more than what counts is taken in, and the program is solved again. Nothing is
forgotten: the evidence keeps every cut, for the next program, for the check that no answer contradicts another, and for
the proof at the end.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from models.cuts.cut_model import CutModel
from models.cuts.distinct import FEW

_NEWEST, _HIGHEST = 2, 2
"""Cuts of a site that a working set starts with beside those that counted: its last, and the highest at the centre."""
_REMEMBERED = 2
"""Exchanges for which a cut that counted is expected to count again."""
_ADDED = 4
"""Cuts of a site that are taken in at a time."""
_ROUNDING = 1e-11
"""By how much a cut may lie above its site's height, in the units of the model's value and 1."""


def first_cuts(
    model: CutModel, centre: FloatArray, distinct: NDArray[np.bool_], least: int = 0
) -> NDArray[np.bool_] | None:
    """Mask (m,) of a working set of the distinct cuts; None: these are so few that choosing is not worth it.

    With the cuts that held up a solution last where there would be fewer than ``least``.
    """
    n_sites = model.site_weights.shape[0]
    if np.count_nonzero(distinct) <= max(FEW, 2 * (_NEWEST + _HIGHEST) * n_sites):
        return None
    places = _ranks(model, np.where(distinct, -model.heights(centre[None])[0], np.inf))
    newest = _ranks(model, np.where(distinct, -np.arange(distinct.size, dtype=np.float64), np.inf)) < _NEWEST
    chosen = (newest | (places < _HIGHEST)) & distinct
    if model.idle is not None:
        chosen |= (model.idle <= _REMEMBERED) & distinct
        others = np.flatnonzero(distinct & ~chosen)
        last = np.argsort(model.idle[others], kind="stable")
        chosen[others[last[: max(least - np.count_nonzero(chosen), 0)]]] = True
    return np.asarray(chosen)


def missed_cuts(
    model: CutModel, point: FloatArray, chosen: NDArray[np.bool_], distinct: NDArray[np.bool_], within: float
) -> tuple[NDArray[np.bool_], bool]:
    """Cuts (m,) that lie highest above what the ``chosen`` ones make of their sites at a point, a few of each site.

    With whether the model of all cuts is above that of the chosen ones by no more than ``within`` there.
    """
    heights, norm = model.heights(point[None])[0], float(model.norms(point[None])[0])
    tops = norm * model.floor
    np.maximum.at(tops, model.site[chosen], heights[chosen])
    above = np.where(chosen | ~distinct, 0.0, heights - tops[model.site])
    excess = np.zeros_like(tops)
    np.maximum.at(excess, model.site, above)
    rounding = _ROUNDING * (1.0 + float(np.abs(tops).max(initial=0.0)))
    most = np.minimum(model.site_weights + model.mixture.radius, 1.0)
    missed = (above > rounding) & (_ranks(model, -above) < _ADDED)
    return missed, not missed.any() or float(most @ excess) <= max(within, rounding)


def _ranks(model: CutModel, keys: FloatArray) -> NDArray[np.intp]:
    """Place (m,) of each cut among those of its site, by rising keys."""
    order = np.lexsort((keys, model.site))
    firsts = np.searchsorted(model.site[order], np.arange(model.site_weights.shape[0]))
    ranks = np.empty(order.shape[0], dtype=np.intp)
    ranks[order] = np.arange(order.shape[0]) - firsts[model.site[order]]
    return ranks
