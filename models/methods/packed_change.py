r"""Packed states of several heads as one, and what a round added to them.

The evidence of a run (``models.cuts.evidence``) only ever gets rows: points, risks, cuts. A store that wrote all of it
after each of T rounds would write of order T^2 rows; with :func:`packed_change` it writes what the round added, and the
few arrays that are of the present alone as they are. Where rows were dropped or changed, as when a site is excluded,
all of it is written once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.basics import Arrays, FloatArray, stack_arrays
from models.cuts.evidence import GROWING
from models.methods.growth import Added

OF_HEAD = " of head "
"""Between the name of an array and the number of its head, where the heads' arrays cannot be stacked."""


@dataclass(frozen=True)
class PackedChange:
    """A packed state after a round: ``present`` arrays as they are, and what was ``added`` to those that grow."""

    present: dict[str, FloatArray]
    added: dict[str, Added]


def stack_heads(heads: Sequence[Arrays]) -> dict[str, FloatArray]:
    """Arrays of all heads under a leading axis; one that not all have, or not in one shape, is there by head."""
    alike = _alike(heads)
    apart = {
        f"{name}{OF_HEAD}{k}": array
        for k, head in enumerate(heads) for name, array in head.items() if name not in alike
    }
    return {**stack_arrays([{name: head[name] for name in alike} for head in heads]), **apart}


def packed_change(before: Sequence[Arrays] | None, after: Sequence[Arrays]) -> PackedChange:
    """Change of the heads' packed states; ``before`` None: nothing is known of an earlier one."""
    present = stack_heads([{name: array for name, array in head.items() if name not in GROWING} for head in after])
    growing = [{name: head[name] for name in GROWING if name in head} for head in after]
    known = before is not None and all(_extends(old, new) for old, new in zip(before, growing, strict=True))
    old = [{name: head[name] for name in GROWING if name in head} for head in before or ()]
    if not known or _alike(old) != _alike(growing):
        old = [{name: array[:0] for name, array in head.items()} for head in growing]
    alike, added = _alike(growing), {}
    tails = [
        {name: array[len(start[name]) :] for name, array in head.items()}
        for start, head in zip(old, growing, strict=True)
    ]
    for name in alike:
        added[name] = Added(1, len(old[0][name]), np.stack([np.asarray(tail[name], np.float64) for tail in tails]))
    for k, tail in enumerate(tails):
        for name in tail.keys() - set(alike):
            added[f"{name}{OF_HEAD}{k}"] = Added(0, len(old[k][name]), np.asarray(tail[name], np.float64))
    return PackedChange(present, added)


def _alike(heads: Sequence[Arrays]) -> list[str]:
    """Names of the arrays that all heads have in one shape."""
    shapes = [{name: array.shape for name, array in head.items()} for head in heads]
    first = shapes[0] if shapes else {}
    return [name for name, shape in first.items() if all(each.get(name) == shape for each in shapes)]


def _extends(before: Arrays, after: Arrays) -> bool:
    """Whether a packed evidence has all rows of an earlier one, in their places, and at most more of them.

    Rows are added or dropped whole, so the scalars of a cut and the risks of a point tell which they are.
    """
    if any((name in before) != (name in after) for name in GROWING) or "points" not in after:
        return False
    for name in GROWING:
        old, new = before[name], after[name]
        if old.shape[1:] != new.shape[1:] or old.shape[0] > new.shape[0]:
            return False
        scalars = name == "risks" or old.ndim == 1
        if scalars and not np.array_equal(old, new[: old.shape[0]], equal_nan=True):
            return False
    return True
