"""Which rows are whose, and the weight and radius of each site, from what a fit is given."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

from models.basics import ProblemError
from models.estimators import DRSVC
from models.estimators.sites import (
    Rows,
    Sites,
    machines_of,
    one_site,
    site_radii,
    site_weights,
    sites_of,
    typical_range,
)

FEATURES = np.array([[0.0, 5.0, 1.0], [4.0, 5.0, 2.0], [2.0, 5.0, 11.0]])


def test_names_are_sorted_and_rows_point_to_theirs() -> None:
    for groups in (["b", "a", "b", "c"], np.array(["b", "a", "b", "c"])):
        found = sites_of(groups, 4)
        assert found.names == ("a", "b", "c") and found.index.tolist() == [1, 0, 1, 2]
    assert sites_of([7, 3, 7], 3).names == (3, 7)
    assert one_site(3).names == ("all",) and one_site(3).index.tolist() == [0, 0, 0]


@pytest.mark.parametrize("missing", [None, math.nan, np.float32("nan"), pd.NA, pd.NaT])
def test_a_row_without_a_site_is_refused(missing: Any) -> None:
    with pytest.raises(ProblemError, match="groups must name the site of every row, some are missing"):
        sites_of(np.array([1.0, missing, 2.0], dtype=object), 3)


def test_a_site_that_is_named_by_a_day_keeps_that_name() -> None:
    days = np.array(["2026-01-02", "2026-01-01", "2026-01-02"], dtype="datetime64[ns]")
    assert sites_of(days, 3).names == (datetime(2026, 1, 1), datetime(2026, 1, 2))
    with pytest.raises(ProblemError, match="some are missing"):
        sites_of(np.array(["2026-01-02", "NaT"], dtype="datetime64[ns]"), 2)


def test_a_site_whose_rows_count_nothing_is_left_out_and_the_others_keep_their_names() -> None:
    rows = Rows(
        np.arange(10.0).reshape(5, 2), np.array(list("vwxyz")), Sites(("a", "b", "c"), np.array([2, 1, 0, 2, 1])),
        np.array([1.0, 0.0, 0.5, 2.0, 0.0]), np.array([4, 5, 6, 7, 8]),
    )
    found = rows.present()
    assert found.sites.names == ("a", "c") and found.sites.index.tolist() == [1, 0, 1]
    assert found.outcomes.tolist() == ["v", "x", "y"] and found.counts.tolist() == [1.0, 0.5, 2.0]
    assert found.features[:, 0].tolist() == [0.0, 4.0, 6.0]
    assert found.machine is not None and found.machine.tolist() == [4, 6, 7]
    assert found.present() is found


def test_weights_are_alike_by_rows_or_as_stated() -> None:
    names, rows = ("a", "b", "c"), np.array([10.0, 30.0, 60.0])
    for given in (None, "uniform"):
        assert site_weights(given, names, rows).tolist() == [1 / 3] * 3
    assert site_weights("samples", names, rows) == pytest.approx([0.1, 0.3, 0.6])
    assert site_weights({"c": 0.2, "a": 0.5, "b": 0.3}, names, rows).tolist() == [0.5, 0.3, 0.2]
    for wrong in ({"a": 0.5, "b": 0.5}, {"a": 0.5, "b": 0.3, "c": 0.1, "d": 0.1}):
        with pytest.raises(ProblemError, match="client_weights is given for groups"):
            site_weights(wrong, names, rows)
    for shares in ([0.5, 0.4, 0.2], [1.2, -0.4, 0.2], [math.nan, 0.5, 0.5]):
        told = "got .*, which sum to (1.1|1|nan)$"
        with pytest.raises(ProblemError, match=f"^client_weights must be at or above 0 and sum to 1, {told}"):
            site_weights(dict(zip(names, shares, strict=True)), names, rows)


def test_a_radius_by_rows_is_a_tenth_of_a_row_in_units_of_the_features_or_of_a_flip() -> None:
    """1 / (10 N) of what 1 is in scaled units, at most of what a label costs: else all flips would be paid for."""
    names, rows = ("a", "b"), np.array([10.0, 40.0])
    assert typical_range(FEATURES) == 7.0  # the median of 4 and 10; what never varies has no say
    assert site_radii("samples", names, rows, FEATURES, math.inf) == pytest.approx([0.07, 0.0175])
    assert site_radii("samples", names, rows, FEATURES, 2.0) == pytest.approx([0.02, 0.005])
    assert site_radii("samples", names, rows, FEATURES[:1], math.inf) == pytest.approx([0.01, 0.0025])
    assert site_radii(0.25, names, rows, FEATURES, 2.0) == [0.25, 0.25]
    assert site_radii({"b": "samples", "a": 0.5}, names, rows, FEATURES, 2.0) == pytest.approx([0.5, 0.005])
    with pytest.raises(ProblemError, match="radius is given for groups 'a', the data are of groups 'a', 'b'"):
        site_radii({"a": 0.5}, names, rows, FEATURES, 2.0)


@pytest.mark.parametrize("missing", [None, math.nan, pd.NA, pd.NaT])
@pytest.mark.parametrize("kind", [list, pd.Series, lambda labels: np.array(labels, dtype=object)])
def test_a_row_without_a_label_is_refused(missing: Any, kind: Any) -> None:
    """Of a list with NaN numpy makes a class "nan"; of None and NA scikit-learn tells neither what it is nor where."""
    rows, labels = np.arange(24.0).reshape(12, 2), ["a", "b"] * 6
    DRSVC().fit(rows, kind(labels))
    labels[7] = missing
    with pytest.raises(ProblemError, match="y must have the label of every row: 1 without, first row 7"):
        DRSVC().fit(rows, kind(labels))


@pytest.mark.parametrize("groups", ["plant", 3, None])
def test_one_name_is_no_vector_of_names(groups: object) -> None:
    with pytest.raises(ProblemError, match="machines must be a vector with the name of each row's machine"):
        machines_of(np.array(groups, dtype=object), 1)
    if groups is not None:
        with pytest.raises(ProblemError, match="groups must be a vector"):
            sites_of(groups, 1)


def test_weights_that_miss_the_sum_by_little_are_told_with_all_their_digits() -> None:
    with pytest.raises(ProblemError, match=r"got 0\.5, 0\.50000001, which sum to 1\.00000001$"):
        site_weights({"a": 0.5, "b": 0.50000001}, ("a", "b"), np.ones(2))
