"""What a request for diagnoses may hold: readings are numbers, and samples come one way."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from services.contracts.evaluation.diagnosis import MOST_SAMPLES, DiagnoseRequest
from services.contracts.reading import explain


@pytest.mark.parametrize("reading", ['"1.5"', "true", "null", "NaN", "Infinity", "-Infinity", '"NaN"', "[1.5]"])
def test_a_reading_is_a_finite_number_and_nothing_that_reads_as_one(reading: str) -> None:
    for body in (f'{{"sample": {{"flow": {reading}}}}}', f'{{"samples": [{{"flow": 1}}, {{"flow": {reading}}}]}}'):
        with pytest.raises(ValidationError, match="flow"):
            DiagnoseRequest.model_validate_json(body)
        with pytest.raises(ValidationError, match="flow"):
            DiagnoseRequest.model_validate(json.loads(body))


@pytest.mark.parametrize("body", [{}, {"sample": {"flow": 1}, "samples": [{"flow": 1}]}])
def test_samples_come_as_one_or_as_a_list_never_both(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as refused:
        DiagnoseRequest.model_validate(body)
    assert explain(refused.value) == "give either samples, a list, or sample, a single one"


@pytest.mark.parametrize("body", [
    {"sample": {}}, {"samples": []}, {"samples": [{"flow": 1}, {}]}, {"samples": [{"flow": 1}] * (MOST_SAMPLES + 1)},
    *({"sample": {"flow": 1}, "coverage": wrong} for wrong in (0, 1, -0.5)),
    *({"sample": {"flow": 1}, "alias": wrong} for wrong in ("", "a/b", "..\n", "x" * 61)),
])
def test_what_is_no_request_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        DiagnoseRequest.model_validate(body)


def test_a_single_sample_is_a_list_of_one_for_the_champion() -> None:
    one = DiagnoseRequest.model_validate({"sample": {"flow": 1}})
    assert one.all_samples == ({"flow": 1.0},) and (one.alias, one.coverage, one.units) == ("champion", None, {})
    assert DiagnoseRequest.model_validate({"samples": [{"a": 1}, {"a": 2}]}).all_samples == ({"a": 1.0}, {"a": 2.0})
