"""Sensors that are scaled by their logarithms: the scale itself, the contract that says so, and where it cannot be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.basics import ProblemError
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.machines.value_range import Ranges
from services.contracts.problems.support import PolytopeSpec, scaled_support

CLASSES = (FaultClass(name="ok", severity=0), FaultClass(name="worn", severity=1))
LOG = Feature(name="particles", unit="1", low=0.02, high=50.0, scale="log")
LINEAR = Feature(name="flow", unit="l/min", low=-3.0, high=80.0)
BEFORE = "b72d66829b26e5ce4f313fb5cb886771f3faa4fa7cdfc44518e15aae0ca03910"
"""Fingerprint of a contract of one linear sensor, as it was before there was a scale."""
ENDS = st.floats(1e-12, 1e12)


def kind(*features: Feature) -> AssetType:
    return AssetType(name="rig", features=features, fault_classes=CLASSES)


@given(low=ENDS, ratio=st.floats(1.5, 1e9), place=st.floats(0.0, 1.0))
def test_equal_ratios_are_equal_steps_and_the_way_back_leads_back(low: float, ratio: float, place: float) -> None:
    ranges = Ranges([Feature(name="x", unit="1", low=low, high=low * ratio, scale="log")])
    value = np.array([[low * ratio**place]])
    assert ranges.scale(value)[0, 0] == pytest.approx(place, abs=1e-12)
    np.testing.assert_allclose(ranges.unscale(ranges.scale(value)), value, rtol=1e-12)
    ends = ranges.scale(np.array([ranges.low, ranges.high]))
    assert ends.ravel().tolist() == [0.0, 1.0], "a reading at an end is at the end of the box, not beyond it"


def test_each_sensor_is_scaled_by_its_own_scale_and_no_value_stays_none() -> None:
    ranges = Ranges([LINEAR, LOG])
    np.testing.assert_allclose(ranges.scale(ranges.middle), 0.5, atol=1e-15)
    assert ranges.middle.tolist() == [38.5, pytest.approx(1.0)]
    scaled = ranges.scale(np.array([[-3.0, 0.02], [np.nan, 50.0], [80.0, np.nan]]))
    np.testing.assert_array_equal(scaled, [[0.0, 0.0], [np.nan, 1.0], [1.0, np.nan]])


@pytest.mark.parametrize("low", [0.0, -2.0])
def test_a_range_without_logarithms_has_no_such_scale(low: float) -> None:
    with pytest.raises(ValueError, match="scale log needs a range above 0"):
        Feature(name="x", unit="1", low=low, high=9.0, scale="log")


def test_a_range_whose_ends_have_one_logarithm_has_no_such_scale() -> None:
    """Every reading in it would be scaled to NaN."""
    next_above = math.nextafter(1e6, math.inf)
    with pytest.raises(ValueError, match="ends of unlike logarithms, got 1000000.0, 1000000.0000000001"):
        Feature(name="x", unit="1", low=1e6, high=next_above, scale="log")
    assert Feature(name="x", unit="1", low=1e6, high=next_above)


def test_what_says_nothing_of_a_scale_reads_as_before_there_was_one() -> None:
    """Signatures and fingerprints of stored contracts are of what was written then."""
    assert "scale" not in LINEAR.model_dump() and "scale" not in LINEAR.model_dump_json()
    assert Feature.model_validate_json(LOG.model_dump_json()) == LOG
    plain = LOG.model_copy(update={"scale": "linear"})
    assert kind(LINEAR, plain).fingerprint != kind(LINEAR, LOG).fingerprint
    assert kind(LINEAR, plain).sensors_fingerprint != kind(LINEAR, LOG).sensors_fingerprint
    assert kind(LINEAR).fingerprint == BEFORE


def test_a_polytope_is_of_readings_as_they_are() -> None:
    spec = PolytopeSpec(matrix=((1.0, 1.0), (-1.0, 0.0), (0.0, -1.0)), limits=(9.0, 3.0, 0.0))
    assert scaled_support(spec, kind(LINEAR, LOG.model_copy(update={"scale": "linear"})), "classification", None)
    with pytest.raises(ProblemError, match="leave out features with scale log"):
        scaled_support(spec, kind(LINEAR, LOG), "classification", None)
