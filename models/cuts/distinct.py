"""Cuts that are told more than once: of hundreds of sites most answer with a piece of their risk again and again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray

FEW = 600
"""Cuts up to which all are taken at once."""
_SAME = 1e-13
"""By how much numbers of one cut told twice may differ, in the units of the largest number of a cut and 1."""


def distinct_cuts(
    site: NDArray[np.intp], offset: FloatArray, norm_weight: FloatArray, slope: FloatArray, swing: FloatArray | None
) -> NDArray[np.bool_]:
    """Mask (m,) of one of each cut that a site told more than once but for rounding: the newest.

    A site whose points lie on one piece of its risk answers with that piece again and again. All, where they are few.
    """
    if site.shape[0] <= FEW:
        return np.ones(site.shape[0], dtype=np.bool_)
    parts = [slope, *([] if swing is None else [swing])]
    columns = np.column_stack([offset, norm_weight])
    widths = [part.shape[1] for part in (columns, *parts)]
    # Equal cuts have equal products with any vector, so they are neighbours in the order of such a product.
    along = np.split(np.random.default_rng(0).normal(size=sum(widths)), np.cumsum(widths)[:-1])
    keys = np.asarray(sum(part @ vector for part, vector in zip((columns, *parts), along, strict=True)))
    size = max(1.0, *(max(float(part.max()), -float(part.min())) for part in (columns, *parts)))
    order = np.lexsort((keys, site))
    near = (np.diff(keys[order]) <= _SAME * size * np.sqrt(sum(widths))) & (np.diff(site[order]) == 0)
    first, second = order[:-1][near], order[1:][near]
    equal = np.ones(first.size, dtype=np.bool_)
    for part in (columns, *parts):
        equal &= (np.abs(part[first] - part[second]) <= _SAME * size).all(axis=1)
    firm = np.zeros(order.shape[0], dtype=np.bool_)
    firm[np.flatnonzero(near)[equal] + 1] = True  # the same cut as the one before in that order
    group = np.cumsum(~firm) - 1
    newest = np.zeros(int(group[-1]) + 1 if group.size else 0, dtype=np.intp)
    np.maximum.at(newest, group, order)
    distinct = np.zeros(order.shape[0], dtype=np.bool_)
    distinct[newest] = True
    return distinct
