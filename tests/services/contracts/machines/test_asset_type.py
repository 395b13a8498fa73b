"""Names of an asset type, none twice, found with work that grows as their number; and what a unit may be."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from services.contracts.machines.asset_type import AssetType, Feature, named_twice
from services.contracts.machines.target import Target
from services.contracts.reading import explain


class Counted(str):
    """A name that counts how often one is held against another."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)


def test_thousands_of_names_are_not_each_held_against_each() -> None:
    names = [Counted(f"feature_{number}") for number in range(3000)]
    assert named_twice([*names, Counted("feature_7")]) == ["feature_7"]
    assert Counted.compared < 10 * len(names)


@pytest.mark.parametrize(("features", "classes", "said"), [
    (("a", "b", "a", "b", "c"), ("ok", "bad"), "feature named twice: a, b"),
    (("b", "a", "b", "a", "c"), ("ok", "bad"), "feature named twice: a, b"),
    (("a", "b"), ("ok", "bad", "ok"), "fault class named twice: ok"),
])
def test_a_name_that_is_there_twice_is_named(features: tuple[str, ...], classes: tuple[str, ...], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        AssetType.model_validate({
            "name": "pump", "features": [{"name": name, "unit": "1", "low": 0.0, "high": 1.0} for name in features],
            "fault_classes": [{"name": name, "severity": 0} for name in classes],
        })


@pytest.mark.parametrize("kind", [Feature, Target])
@pytest.mark.parametrize("unit", ["m\nm", "a\x00", "\x1b[2J", "b\x7f"])
def test_a_unit_is_one_line_of_text(kind: type[Feature] | type[Target], unit: str) -> None:
    """It stands on pages, in a shell and in exported code."""
    assert kind(name="flow", unit="µm²/s at 20 °C", low=0.0, high=1.0).unit == "µm²/s at 20 °C"
    with pytest.raises(ValidationError) as found:
        kind(name="flow", unit=unit, low=0.0, high=1.0)
    assert explain(found.value) == "unit: give a unit on one line, without control characters"
