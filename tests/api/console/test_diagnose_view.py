"""Measurements as a person writes them, and how far off a reading may be: from text alone, without a page."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from api.console.endpoints.models import _confidence
from api.console.views import diagnose
from api.console.views.diagnose import MOST_ROWS, sample_of, samples_of
from services.contracts.errors import InvalidInputError
from services.contracts.machines.asset_type import AssetType

FEATURES = (
    {"name": "flow", "unit": "L/min", "low": 20.0, "high": 60.0},
    {"name": "particles", "unit": "1/mL", "low": 1.0, "high": 10_000.0, "scale": "log"},
    {"name": "oil", "unit": "degC", "low": 0.0, "high": 100.0, "required": False},
)
RIG = AssetType.model_validate({
    "name": "rig", "features": FEATURES, "fault_classes": [{"name": name, "severity": 0} for name in ("ok", "leak")],
})


def by(sample: dict[str, float], radius: float | None) -> dict[str, float]:
    return {each.feature.name: each.by for each in diagnose._margins(RIG.features, sample, radius)}


def test_a_radius_is_told_in_the_unit_of_each_reading_that_is_there() -> None:
    found = by({"flow": 30.0, "particles": 100.0}, 0.25)
    assert found == {"flow": 10.0, "particles": pytest.approx(90.0)}, "a quarter of four decades down is one decade"
    assert by({"flow": 30.0, "particles": 0.1}, 0.25)["particles"] == pytest.approx(0.9), "from the low end on"


@pytest.mark.parametrize("radius", [None, math.inf, math.nan])
def test_without_a_finite_radius_no_margin_is_told(radius: float | None) -> None:
    assert by({"flow": 30.0}, radius) == {}


def test_an_optional_reading_may_be_left_empty_and_no_other() -> None:
    form = {"reading-flow": " 30 ", "reading-particles": "1e2", "reading-oil": "", "reading-else": "7"}
    assert sample_of(RIG, form) == {"flow": 30.0, "particles": 100.0}
    assert sample_of(RIG, form | {"reading-oil": "55"})["oil"] == 55.0
    for text, said in (("", "flow: a number is needed"), ("nan", "flow: a finite number is needed"),
                       ("inf", "flow: a finite number is needed"), ("3,5", "flow: a number is needed")):
        with pytest.raises(InvalidInputError, match=f"^{said}$"):
            sample_of(RIG, form | {"reading-flow": text})


def test_lines_of_text_are_read_with_blank_ones_left_out() -> None:
    assert samples_of("\n a , b \n1,2\n\n , \n3,\"4\"\n") == [{"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 4.0}]


@pytest.mark.parametrize(("text", "said"), [
    ("", "a line with the names"), ("a,b", "a line with the names"), ("a,a\n1,2", "the first line has a name twice"),
    ("a,b\n1,2\n1", "CSV, line 3: 1 values for 2 names"), ("a,b\n1,x", "b, line 2: a number is needed"),
    ("a\n1\n2\n-inf", "a, line 4: a finite number is needed"),
])
def test_what_is_no_table_is_told_by_its_line(text: str, said: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        samples_of(text)
    assert said in str(refused.value)


def test_a_page_takes_so_many_rows_and_no_more() -> None:
    assert len(samples_of("a\n" + "1\n" * MOST_ROWS)) == MOST_ROWS
    with pytest.raises(InvalidInputError, match=f"CSV: {MOST_ROWS + 1} measurements; this page takes {MOST_ROWS}"):
        samples_of("a\n" + "1\n" * (MOST_ROWS + 1))


@pytest.mark.parametrize(("fields", "wanted"), [({}, 0.9), ({"confidence": "0.95"}, 0.95)])
def test_the_confidence_of_an_interval(fields: dict[str, Any], wanted: float) -> None:
    assert _confidence(fields) == wanted


@pytest.mark.parametrize("text", ["0", "1", "-0.1", "nan", "much", ""])
def test_a_confidence_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="a number between 0 and 1 is needed"):
        _confidence({"confidence": text})


def test_estimates_are_asked_for_at_the_confidence_that_was_chosen() -> None:
    asked: list[tuple[Any, ...]] = []

    def estimate(*given: Any) -> list[Any]:
        asked.append(given)
        return ["an estimate"]

    backend: Any = SimpleNamespace(predictors=SimpleNamespace(get=lambda *_: SimpleNamespace(estimate=estimate)))
    (found,) = diagnose.ask(backend, "rigs", "champion", [{"flow": 30.0}], 0.95)
    assert asked == [([{"flow": 30.0}], None, 0.95)]
    assert (found.diagnosis, found.estimate, found.margins) == (None, "an estimate", ())
