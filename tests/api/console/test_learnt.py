"""What the page of a version draws of its sensors: the telling ones first, all on one upright axis."""

from __future__ import annotations

import math
import re

from api.console.views.learnt import sensor_charts


def curve(sensor: str, heights: list[float], fault: str = "leak") -> dict[str, object]:
    return {"sensor": sensor, "unit": "bar", "fault_class": fault, "readings": [0.0, 1.0, 2.0], "heights": heights}


def places(chart: str) -> list[float]:
    """How far down the marks of a chart are."""
    return [float(y) for y in re.findall(r'<circle[^>]* cy="([\d.]+)"', chart)]


def test_a_sensor_that_says_little_comes_last_and_looks_so() -> None:
    drawn = sensor_charts({"curves": [curve("faint", [-0.1, 0.0, 0.1]), curve("loud", [4.0, 0.0, -4.0])]})
    assert [sensor for sensor, _ in drawn] == ["loud", "faint"]
    loud, faint = (places(str(chart)) for _, chart in drawn)
    assert loud[1] == faint[1], "0 is at one place"
    assert (max(loud) - min(loud)) / (max(faint) - min(faint)) > 30


def test_lines_of_one_sensor_are_in_one_chart_with_its_unit() -> None:
    drawn = sensor_charts({"curves": [curve("flow", [0.0, 0.0, 1.0]), curve("flow", [-2.0, 0.0, 0.0], "wear")]})
    assert len(drawn) == 1 and "flow (bar)" in drawn[0][1] and "wear" in drawn[0][1]


def test_no_curves_and_flat_ones_are_drawn() -> None:
    assert sensor_charts({}) == [] and sensor_charts({"curves": None}) == []
    assert "<svg" in sensor_charts({"curves": [curve("still", [0.0, 0.0, 0.0])]})[0][1]


def test_what_is_no_number_is_drawn_nowhere() -> None:
    told: dict[str, object] = curve("odd", [0.0, 1.0, 0.5])
    told["heights"] = ["NaN", math.nan, 0.5]
    (only,) = sensor_charts({"curves": [told]})
    assert len(places(str(only[1]))) == 1 and "nan" not in str(only[1]).lower()
