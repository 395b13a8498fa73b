"""The built-in asset types: they fit the features, the classes, and what pumps measure."""

import json

import numpy as np
import pytest

from models.features.condition_indicators import INDICATOR_NAMES, INDICATOR_UNITS, condition_indicators
from services.contracts.errors import NotFoundError
from services.contracts.machines.value_range import Ranges
from services.plant_simulator.assets import builtin_asset_type, builtin_asset_type_names, builtin_asset_type_path
from services.plant_simulator.faults import FAULTS, combinations


def test_there_are_three():
    assert builtin_asset_type_names() == ("triplex-pump", "triplex-pump-faults", "triplex-pump-severity")
    with pytest.raises(NotFoundError, match="no built-in asset type 'pump': there are triplex-pump, "):
        builtin_asset_type_path("pump")


@pytest.mark.parametrize(("name", "faults"), [("triplex-pump", ["leak"]), ("triplex-pump-faults", FAULTS)])
def test_features_and_classes_are_those_of_the_code(name, faults):
    asset_type = builtin_asset_type(name)
    assert asset_type.name == builtin_asset_type_path(name).stem == name
    assert asset_type.feature_names == INDICATOR_NAMES
    assert tuple(feature.unit for feature in asset_type.features) == INDICATOR_UNITS
    assert asset_type.class_names == combinations(faults)
    severities = {fault.name: fault.severity for fault in asset_type.fault_classes}
    assert severities["healthy"] == 0
    assert all(severities[name] > 0 for name in asset_type.class_names[1:])


def test_the_binary_ranges_hold_the_measurements_and_are_used(nominal):
    asset_type = builtin_asset_type("triplex-pump")
    scaled = []
    for folder in nominal:
        rate = json.loads((folder / "plant.json").read_text())["sampling_rate_hz"]
        with np.load(folder / "test.npz", allow_pickle=False) as archive:
            scaled.append(Ranges(asset_type.features).scale(condition_indicators(archive["flow"], rate)))
    values = np.concatenate(scaled)
    outside = ((values < 0.0) | (values > 1.0)).mean(axis=0)
    assert outside.max() < 0.03
    assert outside.mean() < 0.005
    assert np.ptp(np.clip(values, 0, 1), axis=0).min() > 0.5
