"""The argument ``tuning``: any mapping that tries something is read, all else is refused in one line."""

from __future__ import annotations

from collections import UserDict
from types import MappingProxyType
from typing import Any

import pytest

from models.basics import ProblemError
from models.estimators.tuning_argument import asked_tuning, listed, numbers


@pytest.mark.parametrize("kind", [dict, UserDict, MappingProxyType])
def test_any_mapping_that_tries_something_is_read(kind: Any) -> None:
    given = kind({"radius": [0.1, 1.0], "folds": 4})
    assert asked_tuning(given) == {"radius": [0.1, 1.0], "folds": 4}


def test_auto_tries_nothing_by_itself() -> None:
    assert asked_tuning("auto") == {}


@pytest.mark.parametrize(("given", "why"), [
    ("all", 'must be None, "auto" or a mapping'), ([("radius", 1.0)], 'must be None, "auto" or a mapping'),
    (True, 'must be None, "auto" or a mapping'), ({"radius": 1.0, "radii": 2.0}, "got 'radii'"),
    ({1: 2.0, "radius": 1.0}, "got 1"), ({}, "says what is tried"), ({"folds": 3, "seed": 1}, "says what is tried"),
])
def test_what_is_none_is_refused(given: Any, why: str) -> None:
    with pytest.raises(ProblemError, match=why):
        asked_tuning(given)


def test_one_value_is_a_list_of_one_and_a_collection_a_list() -> None:
    assert listed(2) == [2] and listed("abc") == ["abc"] and listed((1, 2)) == [1, 2] and listed({3}) == [3]
    assert numbers("radius", range(3)) == [0.0, 1.0, 2.0]
