"""Measurements as a person writes them, and how far off a reading may be: from text alone, without a page."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from api.console.endpoints.models import _confidence
from api.console.rendering import environment
from api.console.views import diagnose
from api.console.views.diagnose import MOST_ROWS, sample_of, samples_of
from services.contracts.errors import InvalidInputError
from services.contracts.evaluation.calibrated import UNLIKE
from services.contracts.machines.asset_type import AssetType
from services.contracts.machines.value_range import Ranges
from services.contracts.problems.training_spec import TrainingSpec
from services.predictor.predictor import Predictor
from tests.versions import a_version

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


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_all_readings_may_be_off_at_once_by_the_share_that_is_told_and_by_no_more(norm: str) -> None:
    """Of planes as steep along every reading that is where the answer changes, whatever the norm of the radius."""
    weights = np.array([[2.0, -2.0, 2.0, -0.3]])
    served = Predictor(a_version(RIG, weights, spec=TrainingSpec.model_validate({"transport_norm": norm})))
    backend: Any = SimpleNamespace(predictors=SimpleNamespace(get=lambda *_: served))

    def answer(scaled: list[float]) -> Any:
        readings = Ranges(RIG.features).unscale(np.array([scaled]))[0].tolist()
        sample = dict(zip(RIG.feature_names, readings, strict=True))
        (found,) = diagnose.ask(backend, "rigs", "champion", [sample], 0.9)
        return found

    found, said = answer([0.6, 0.4, 0.3]), []
    assert found.together == pytest.approx(0.7 / 6.0) and found.diagnosis.fault_class == "leak"
    for off in (0.999, 1.001):
        by = off * found.together
        said.append(answer([0.6 - by, 0.4 + by, 0.3 - by]).diagnosis.fault_class)
    assert said == ["leak", "ok"]


def shown(weights: list[float], sample: dict[str, float]) -> str:
    """The card of an answer."""
    served = Predictor(a_version(RIG, np.array([weights])))
    backend: Any = SimpleNamespace(predictors=SimpleNamespace(get=lambda *_: served))
    results = diagnose.ask(backend, "rigs", "champion", [sample], 0.9)
    template = environment().from_string('{% import "parts.html" as parts %}{% include "answer.html" %}')
    return template.render(results=results)


def test_the_card_says_nothing_of_the_readings_where_the_model_looks_at_none() -> None:
    text = shown([0.0, 0.0, 0.0, -1.0], {"flow": 21.0, "particles": 9_000.0})
    assert "none moves the answer from what it is with every reading in the middle of its range" in text
    assert "No error of the readings, of any size, changes this answer." in text


def test_the_card_says_of_which_readings_the_share_is_one_of_logarithms() -> None:
    text = shown([1.0, 1.0, 0.0, -0.5], {"flow": 21.0, "particles": 9_000.0})
    assert "of its range (of the range of its logarithm: particles)." in text
    assert "No sensor stands out" not in text


def test_no_coverage_is_promised_of_a_measurement_that_is_unlike_the_held_out_ones() -> None:
    found = Predictor(a_version(RIG, np.array([[1.0, 1.0, 0.0, -0.5]]))).diagnose([{"flow": 21.0, "particles": 9.0}])[0]
    card = environment().from_string('{% import "parts.html" as parts %}{% include "answer.html" %}')
    promised, withdrawn = "the true class of such measurements is among", "which is unlike them, it is not promised"
    for reason, abstained in (("", False), ("at coverage 0.9 it can be any of the classes", True),
                              (f"at coverage 0.9 it can be any of the classes; {UNLIKE}: its scores are larger", True)):
        told = {"class_set": ("leak",), "coverage": 0.9, "reason": reason, "abstained": abstained}
        result = diagnose.Result(found.model_copy(update=told), None, ())
        text = card.render(results=[result])
        assert (promised in text, withdrawn in text) == (UNLIKE not in reason, UNLIKE in reason)


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
    assert samples_of("\ufeffa,b\n1,2\n3,4") == samples_of("a,b\n1,2\n3,4")
    assert samples_of("a,b\r1,2\r3,4") == samples_of("a,b\r\n1,2\r\n3,4\r\n") == samples_of("a,b\n1,2\n3,4")


@pytest.mark.parametrize(("text", "said"), [
    ("", "a line with the names"), ("a,b", "a line with the names"), ("a,a\n1,2", "the first line has a name twice"),
    ("a,b\n1,2\n1", "CSV, line 3: 1 values for 2 names"), ("a,b\n1,x", "b, line 2: a number is needed"),
    ("a\n1\n2\n-inf", "a, line 4: a finite number is needed"), ("a\n1\n\n \nx", "a, line 5: a number is needed"),
    ("a;b\n1,5;2,5", "CSV: values are divided by ';', commas are needed"), ("a\tb\n1\t2", "are divided by '\\t'"),
    ("a\n1_000", "a, line 2: a number is needed"), ("a\n" + "1" * 140_000, "a value is longer than any number"),
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
