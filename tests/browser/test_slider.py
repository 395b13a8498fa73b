"""The form of readings in a real browser: a sensor over decades slides in the logarithm, and a file is read or not."""

from __future__ import annotations

from typing import Any

import pytest

from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from tests.browser.served import rendered, serve


@pytest.fixture
def form(browser: Any) -> Any:
    """The form of readings as the page has it: one sensor by logarithms, one as it is; no service behind it."""
    sensors = (
        Feature(name="particles", unit="1/ml", low=0.1, high=123456.7, scale="log"),
        Feature(name="temp", unit="degC", low=20.0, high=80.0),
    )
    classes = (FaultClass(name="ok", severity=0), FaultClass(name="worn", severity=1))
    text = rendered(
        "diagnose.html", name="oil", asset_type=AssetType(name="oil", features=sensors, fault_classes=classes),
        alias="champion", fields={}, results=(), problem="",
    )
    page = browser.new_page()
    serve(page, text)
    yield page
    page.close()


def test_equal_ways_of_the_slider_are_equal_ratios_of_the_reading(form: Any) -> None:
    slider, number = form.get_by_label("particles, by sliding"), form.locator("#reading-1")
    assert float(number.input_value()) == pytest.approx((0.1 * 123456.7) ** 0.5, rel=1e-5)
    assert float(slider.input_value()) == pytest.approx(0.5, abs=1e-4)
    found = []
    for place in ("0", "0.25", "0.5", "0.75", "1"):
        slider.fill(place)
        found.append(float(number.input_value()))
        assert slider.get_attribute("aria-valuetext") == number.input_value()
    assert [b / a for a, b in zip(found, found[1:], strict=False)] == pytest.approx([1234567.0**0.25] * 4, rel=1e-4)
    assert (found[0], found[-1]) == (0.1, 123456.7), "a rounded end would be outside the range"
    for reading, where in (("1000", 0.6569), ("0", 0.0), ("-3", 0.0), ("1e9", 1.0)):
        number.fill(reading)
        assert float(slider.input_value()) == pytest.approx(where, abs=1e-3)


def test_other_sensors_slide_as_they_are(form: Any) -> None:
    slider, number = form.get_by_label("temp, by sliding"), form.locator("#reading-2")
    slider.fill("35.5")
    assert number.input_value() == "35.5"
    number.fill("60")
    assert slider.input_value() == "60"


def test_a_file_is_read_and_one_that_is_too_large_is_said_to_be(form: Any) -> None:
    area, chooser = form.locator("#csv"), form.locator("#csv-file")
    why = "element => element.validationMessage"
    chooser.set_input_files([{"name": "t.csv", "mimeType": "text/csv", "buffer": "\ufeffa,b\n1,2\n".encode()}])
    form.wait_for_function("document.getElementById('csv').value !== ''")
    assert area.input_value() == "a,b\n1,2\n" and area.evaluate(why) == ""
    chooser.set_input_files([{"name": "t.csv", "mimeType": "text/csv", "buffer": b"1" * 4_000_001}])
    form.wait_for_function("document.getElementById('csv').validationMessage.includes('larger than 4 MB')")
    assert area.input_value() == "a,b\n1,2\n"
    area.fill("a\n1")
    assert area.evaluate(why) == ""
