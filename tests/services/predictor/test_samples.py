"""What is read of samples: the contract's order and units, what is clipped, filled and refused; never a value told."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from services.contracts.errors import InvalidInputError
from services.contracts.machines.asset_type import AssetType
from services.predictor.samples import SampleReader
from tests.services.predictor.conftest import CLASSES, FEATURES

GOOD = {
    "flow_mean": 40.0, "flow_ripple": 5.0, "pressure": 150.0, "oil_temperature": 60.0, "vibration": 25.0,
    "speed": 750.0,
}


@pytest.fixture(scope="module")
def reader() -> SampleReader:
    return SampleReader(AssetType(name="pump", features=FEATURES, fault_classes=CLASSES))


def test_a_whole_sample_and_one_of_other_numbers_are_read_alike(reader: SampleReader) -> None:
    turned = dict(reversed(GOOD.items()))
    for samples in ([GOOD, turned], [GOOD, turned | {"flow_mean": np.float32(40.0), "speed": 750}]):
        batch = reader.read(samples)
        assert batch.values.tolist() == [list(GOOD.values())] * 2
        assert batch.scaled[0].tolist() == [0.5, 0.5, 0.25, 0.5, 0.5, 0.5]
        assert batch.clipped == batch.imputed == {}


def test_what_may_be_missing_is_the_middle_of_its_range_and_named(reader: SampleReader) -> None:
    short = {name: value for name, value in GOOD.items() if name != "oil_temperature"}
    batch = reader.read([GOOD, short])
    assert batch.imputed == {1: ("oil_temperature",)} and (batch.values[1, 3], batch.scaled[1, 3]) == (60.0, 0.5)
    nothing: dict[str, Any] = {"oil_temperature": None}
    with pytest.raises(InvalidInputError, match="sample 1, feature oil_temperature must be a number, got nothing"):
        reader.read([GOOD, {**GOOD, **nothing}])
    with pytest.raises(InvalidInputError, match="sample 0: missing required feature flow_ripple, speed"):
        reader.read([{name: value for name, value in GOOD.items() if name not in ("flow_ripple", "speed")}])


def test_beyond_its_range_a_sensor_is_clipped_and_named_or_refused(reader: SampleReader) -> None:
    batch = reader.read([GOOD, GOOD | {"flow_mean": 99.0, "vibration": -1.0}])
    assert batch.clipped == {1: ("flow_mean", "vibration")}
    assert batch.values[1, 0] == 99.0 and (batch.scaled[1, 0], batch.scaled[1, 4]) == (1.0, 0.0)
    with pytest.raises(InvalidInputError, match="sample 1, feature pressure is outside its sensor range 100 to 300"):
        reader.read([GOOD, GOOD | {"pressure": 300.5}])
    assert reader.read([GOOD | {"pressure": 300.0}]).clipped == {}


@pytest.mark.parametrize(("value", "what"), [
    (True, "a number, got bool"), ("12345", "a number, got text"), (math.nan, "a finite number"),
    (-math.inf, "a finite number"), (10**400, "a finite number"), ([12345], "a number, got list"),
])
def test_what_is_no_number_is_named_by_its_place_and_never_shown(reader: SampleReader, value: Any, what: str) -> None:
    with pytest.raises(InvalidInputError, match=f"sample 1, feature speed must be {what}") as refused:
        reader.read([GOOD, GOOD | {"speed": value}])
    assert "12345" not in str(refused.value)


def test_units_are_those_of_the_contract(reader: SampleReader) -> None:
    reader.read([GOOD], {"pressure": "bar"})
    reader.read([GOOD], {"vibration": "\u339c/s"})  # mm as one sign
    with pytest.raises(InvalidInputError, match="units: feature pressure must be in bar, got 'Pa'"):
        reader.read([GOOD], {"pressure": "Pa"})
    with pytest.raises(InvalidInputError, match="units: unknown feature 'presure', did you mean pressure"):
        reader.read([GOOD], {"presure": "bar"})
    with pytest.raises(InvalidInputError, match="sample 0: unknown feature 'x{60}', the features are flow_mean"):
        reader.read([GOOD | {"x" * 200: 1.0}])
    with pytest.raises(InvalidInputError, match="give at least one"):
        reader.read([])
