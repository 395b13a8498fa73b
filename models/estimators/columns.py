"""What a table of features must be, each told by its column before numpy or scikit-learn speak of the whole.

They have no word of which column it is, and read a table of dates alone as numbers of nanoseconds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from models.basics import ProblemError
from models.estimators.values import shown

_TIMES = {"M": "dates", "m": "spans of time"}
_INSTEAD = "give a number instead, such as hours since a start"


def check_features(X: Any) -> None:
    """Refuse features that are dates, no numbers, missing or infinite: :class:`ProblemError` names the column.

    Arrays have no names: of them only what numpy would read without a word is refused, times and masked values.
    """
    if hasattr(X, "columns") and hasattr(X, "iloc"):
        if _is_plain(X):
            return
        for place, name in enumerate(X.columns):
            _check_column(shown(name), X.iloc[:, place])
    else:
        _check_array("X", X)


def check_targets(y: Any) -> None:
    """Refuse targets that are dates or spans of time, or of which some are masked."""
    _check_array("y", y)


def _is_plain(frame: Any) -> bool:
    """Whether all columns are numpy's numbers and all are finite, as most are; not seen column by column."""
    if not all(isinstance(kind, np.dtype) and kind.kind in "iuf" for kind in frame.dtypes):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(frame.to_numpy().sum(dtype=np.float64)))


def _check_array(name: str, given: Any) -> None:
    kind = getattr(getattr(given, "dtype", None), "kind", "")
    if kind in _TIMES:
        raise ProblemError(f"{name} has {_TIMES[kind]}: {_INSTEAD}")
    if np.ma.is_masked(given):
        gone = int(np.ma.getmaskarray(given).sum())
        raise ProblemError(f"{name} has {gone} masked values: leave these rows out, or fill them")


def _check_column(name: str, column: Any) -> None:
    kind = getattr(column.dtype, "kind", "")
    if kind in _TIMES:
        raise ProblemError(f"X has {_TIMES[kind]} in the column {name}: {_INSTEAD}, or leave it out")
    if kind == "c":
        raise ProblemError(f"the column {name} of X must hold real numbers, got complex ones")
    if kind in "biu" and not hasattr(column.dtype, "na_value"):
        return
    values = column.to_numpy()
    try:
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan) if column.hasnans else values.astype(np.float64)
    except (TypeError, ValueError):
        raise ProblemError(f"the column {name} of X must hold numbers, got {_first_other(values)}") from None
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if wrong.size:
        what = "no value" if np.isnan(numbers[wrong[0]]) else "an infinite value"
        raise ProblemError(
            f"the column {name} of X has {what} in row {wrong[0]} ({wrong.size} of {numbers.size} rows are so): "
            "leave such rows out, or fill them"
        )


def _first_other(values: Any) -> str:
    """The first value that is no number, and its row."""
    for row, value in enumerate(values):
        try:
            float(value)
        except (TypeError, ValueError):
            return f"{shown(value)} in row {row}"
    return "values that are not real"
