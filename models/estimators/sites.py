"""Sites and machines of an estimator: which rows are whose, with the radius and the weight of each site."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from models.basics import FloatArray, ProblemError
from models.estimators.values import is_word, number

BETA = 10.0
"""The radius "samples" is ``1 / (BETA N_g)`` in scaled units, as in the experiments of the FDR-SVM paper."""


Names = tuple[Hashable, ...]


@dataclass(frozen=True)
class Sites:
    """Sites by name, and the site of each row as an index (N,) into the names."""

    names: Names
    index: NDArray[np.intp]


def one_site(n_rows: int) -> Sites:
    """All rows at one site."""
    return Sites(("all",), np.zeros(n_rows, dtype=np.intp))


def sites_of(groups: ArrayLike | None, n_rows: int) -> Sites:
    """Sites by the group of each row; without groups one site, with a warning that says how to pass them.

    ``ProblemError`` for groups that are no vector of names of one kind, one for each row.
    """
    if groups is None:
        warnings.warn(
            "fit got no groups, so all rows count as one client; model selection passes groups on only with "
            "sklearn.set_config(enable_metadata_routing=True) and set_fit_request(groups=True) on the estimator",
            UserWarning,
            stacklevel=4,
        )
        return one_site(n_rows)
    return Sites(*_named("groups", "site", groups, n_rows))


def machines_of(machines: ArrayLike | None, n_rows: int) -> NDArray[np.intp] | None:
    """Number of the machine of each row (N,), None where nobody says; ``ProblemError`` as of groups."""
    return None if machines is None else _named("machines", "machine", machines, n_rows)[1]


def _named(word: str, what: str, given: ArrayLike, n_rows: int) -> tuple[Names, NDArray[np.intp]]:
    """Names in sorted order, and that of each row as an index (N,) into them; ``word`` is the argument of a fit."""
    labels = np.asarray(given if hasattr(given, "__array__") else _objects(word, what, given))
    if labels.ndim != 1:
        raise ProblemError(f"{word} must be a vector with the name of each row's {what}, got the shape {labels.shape}")
    if labels.shape[0] != n_rows:
        raise ProblemError(f"{word} must name the {what} of each of the {n_rows} rows, got {labels.shape[0]}")
    if labels.dtype.kind == "M":
        labels = labels.astype("M8[us]")  # of nanoseconds numpy makes numbers, and of a missing time the least one
    if any(map(_missing, labels.tolist())):
        raise ProblemError(f"{word} must name the {what} of every row, some are missing (NaN or None)")
    try:
        names, index = np.unique(labels, return_inverse=True)
        set(names.tolist())  # a list can be sorted, but is no name
    except (TypeError, ValueError):
        kinds = ", ".join(sorted({type(label).__name__ for label in labels.tolist()}))
        raise ProblemError(f"{word} must be names of one kind that can be sorted, got {kinds}") from None
    return tuple(names.tolist()), index


def check_labels(y: ArrayLike) -> None:
    """Refuse labels of which one is missing: numpy makes a class "nan" of it, or has no word of which it is.

    :class:`ProblemError` says how many, and the first row.
    """
    labels = np.asarray(y if hasattr(y, "__array__") else _objects("y", "label", y))
    if labels.dtype == object and labels.ndim == 1:
        gone = [row for row, label in enumerate(labels.tolist()) if _missing(label)]
        if gone:
            raise ProblemError(f"y must have the label of every row: {len(gone)} without, first row {gone[0]}")


def _missing(label: object) -> bool:
    """Whether a name is None or one of the values that are not equal to themselves: NaN, and pandas' NaT and NA."""
    same: object = label == label
    return label is None or type(same).__name__ == "NAType" or (isinstance(same, bool | np.bool_) and not same)


def _objects(word: str, what: str, given: Any) -> NDArray[Any]:
    """Python objects as they are: numpy would turn a number among texts into a text."""
    try:
        return np.array(given, dtype=object)
    except ValueError:
        raise ProblemError(f"{word} must be a vector with the name of each row's {what}, got a ragged list") from None


@dataclass(frozen=True)
class Rows:
    """Rows of a fit: features (N, P), outcomes, the site of each, how often it counts, its machine (None: unknown)."""

    features: FloatArray
    outcomes: NDArray[Any]
    sites: Sites
    counts: FloatArray
    machine: NDArray[np.intp] | None = None

    def present(self) -> Rows:
        """Those that count at all; a site whose rows all count 0 times is as if it were not there."""
        if self.counts.all():
            return self
        rows = np.flatnonzero(self.counts)
        here, index = np.unique(self.sites.index[rows], return_inverse=True)
        return Rows(
            self.features[rows], self.outcomes[rows], Sites(tuple(self.sites.names[g] for g in here), index),
            self.counts[rows], None if self.machine is None else self.machine[rows],
        )


def site_weights(
    given: str | Mapping[Any, float] | None, names: Names, rows: FloatArray, word: str = "client_weights"
) -> FloatArray:
    """Weights (G,): alike ("uniform" or None), by how many ``rows`` (G,) there are ("samples"), or by a mapping.

    ``word`` is what an error calls them.

    :class:`ProblemError` for a mapping of other sites, or of weights that do not sum to 1.
    """
    if isinstance(given, Mapping):
        shares = _by_site(word, given, names)
        found = np.array([number(f"the weight of group {name!r}", shares[name]) for name in names])
        if not ((found >= 0).all() and abs(found.sum() - 1.0) <= 1e-9):
            told = ", ".join(f"{share:.12g}" for share in found)
            total = f"{found.sum():.12g}"
            raise ProblemError(f"{word} must be at or above 0 and sum to 1, got {told}, which sum to {total}")
        return found
    if given == "samples":
        return np.asarray(rows / rows.sum())
    return np.full(len(names), 1.0 / len(names))


def site_radii(given: Any, names: Names, rows: FloatArray, features: FloatArray, cost: float) -> list[float]:
    """Radius of each site: a number, "samples", or a mapping of group to either."""
    radii = _by_site("radius", given, names) if isinstance(given, Mapping) else dict.fromkeys(names, given)
    return [_radius(radii[name], n, features, cost) for name, n in zip(names, rows.tolist(), strict=True)]


def _radius(given: Any, n_rows: float, features: FloatArray, cost: float) -> float:
    if is_word(given, "samples"):
        return min(typical_range(features), max(cost, 0.0)) / (BETA * n_rows)
    return number("radius", given, also=' ("samples" is the word for a rule; several are a mapping of group to radius)')


def typical_range(features: FloatArray) -> float:
    """Median range of the features that vary, what 1 is in scaled units; 1 where none varies."""
    ranges = np.ptp(features, axis=0)
    return float(np.median(ranges[ranges > 0])) if (ranges > 0).any() else 1.0


def _by_site(what: str, given: Mapping[Any, Any], names: Names) -> Mapping[Any, Any]:
    if set(given) != set(names):
        listed = (", ".join(sorted(map(repr, each))) for each in (given, names))
        raise ProblemError("{} is given for groups {}, the data are of groups {}".format(what, *listed))
    return given
