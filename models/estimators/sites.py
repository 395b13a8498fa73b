"""Sites of an estimator: which rows are whose, with the radius and the weight of each."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import column_or_1d

from models.problem import ProblemError


@dataclass(frozen=True)
class Sites:
    """Radius and weight of each site by its name; ``labels`` (N,) is None for one site."""

    labels: NDArray[Any] | None
    radius: Mapping[Hashable, Any]
    weights: Mapping[Hashable, float]

    def rows(self, n_rows: int) -> dict[Hashable, Any]:
        """Rows of each site, in the order of the names."""
        if self.labels is None:
            return {"all": slice(None)}
        if self.labels.shape[0] != n_rows:
            raise ProblemError(f"groups must name the site of each of the {n_rows} rows, got {self.labels.shape[0]}")
        return {name: np.flatnonzero(self.labels == name) for name in self.radius}


def one_site(radius: Any) -> Sites:
    """All rows at one site."""
    return Sites(None, {"all": radius}, {"all": 1.0})


def sites_of(groups: ArrayLike, radius: Any, weights: Mapping[Any, float] | None) -> Sites:
    """Sites by the group of each row; ``ProblemError`` where radius or weights are for other groups."""
    labels = column_or_1d(np.asarray(groups))
    if (labels != labels).any():
        raise ProblemError("groups must name the site of every row, some are missing (NaN)")
    names = np.unique(labels).tolist()
    by_site = dict(radius) if isinstance(radius, Mapping) else dict.fromkeys(names, radius)
    shares = dict(weights) if weights is not None else dict.fromkeys(names, 1.0 / max(len(names), 1))
    for what, given in (("radius", by_site), ("weights", shares)):
        if set(given) != set(names):
            raise ProblemError(f"{what} is given for groups {_listed(given)}, the data are of groups {_listed(names)}")
    return Sites(labels, {name: by_site[name] for name in names}, {n: number("weight", shares[n]) for n in names})


def _listed(names: Any) -> str:
    return ", ".join(sorted(str(name) for name in names))


def number(name: str, value: Any) -> float:
    """A parameter as a float, or ``ProblemError`` with its name."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ProblemError(f"{name} must be a number, got {value!r}") from None
