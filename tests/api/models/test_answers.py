"""What a request says beside its samples reaches what serves it, and an answer says which version it is by."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from api.models import endpoints
from api.models.answers import KINDS
from services.contracts.evaluation.calibration import CalibrationFacts
from services.contracts.evaluation.diagnosis import DiagnoseRequest
from services.contracts.evaluation.estimate import GUARANTEE, EstimateRequest
from services.contracts.evaluation.scores import COVERAGE_CONFIDENCE

SAMPLES = [{"flow": 1.0}, {"flow": 2.0}]
UNITS = {"flow": "L/min"}


class Served:
    """Keeps what it is asked."""

    version = SimpleNamespace(version="3", run_id="ab" * 16, coverage=0.875)
    target = SimpleNamespace(name="leak_area", unit="mm^2")
    facts = b'{"kind":"sets"}'

    def __init__(self) -> None:
        self.read_with: list[Any] = []
        self.written_with: tuple[Any, ...] = ()

    def read(self, samples: Any, units: Any) -> list[Any]:
        self.read_with.append((samples, units))
        return list(samples)

    def written(self, rows: list[Any], *given: Any) -> list[bytes]:
        self.written_with = given
        return [b'{"row":%d}' % number for number in range(len(rows))]


def answered(kind: str, **beside: Any) -> tuple[Served, dict[str, Any]]:
    served: Any = Served()
    found = KINDS[kind]
    return served, json.loads(found.whole(served, "pumps", found.asked(beside), SAMPLES))


def test_a_diagnosis_is_made_in_the_units_and_at_the_coverage_that_were_said() -> None:
    served, answer = answered("diagnose", units=UNITS, coverage=0.95)
    assert served.read_with == [(SAMPLES, UNITS)] and served.written_with == (0.95,)
    assert answer == {
        "model": "pumps", "model_version": "3", "run_id": "ab" * 16, "diagnoses": [{"row": 0}, {"row": 1}],
        "calibration": {"kind": "sets"},
    }
    assert answered("diagnose")[0].written_with == (None,)


@pytest.mark.parametrize(("beside", "given"), [
    ({"confidence": 0.75, "coverage": 0.95}, (0.75, 0.95)), ({}, (COVERAGE_CONFIDENCE, None)),
])
def test_an_estimate_is_made_at_the_confidence_and_the_coverage_that_were_said(
    beside: dict[str, float], given: tuple[float, ...]
) -> None:
    served, answer = answered("estimate", units=UNITS, **beside)
    assert served.read_with == [(SAMPLES, UNITS)] and served.written_with == given
    assert answer == {
        "model": "pumps", "model_version": "3", "run_id": "ab" * 16, "target": "leak_area", "unit": "mm^2",
        "estimates": [{"row": 0}, {"row": 1}], "guarantee": GUARANTEE, "held_out_confidence": COVERAGE_CONFIDENCE,
        "held_out_coverage": 0.875, "calibration": {"kind": "sets"},
    }, "the share that the held-out interval held, not the one that it aims at"


def test_what_may_stand_in_a_query_is_what_is_not_of_the_samples() -> None:
    assert KINDS["diagnose"].in_query == ("alias", "coverage")
    assert KINDS["estimate"].in_query == ("alias", "coverage", "confidence")
    assert KINDS["diagnose"].plain.alias == KINDS["estimate"].plain.alias == "champion"
    with pytest.raises(ValidationError, match="confidence"):
        KINDS["diagnose"].asked({"confidence": 0.5})


class Contracted:
    """Stands for cache and predictor in one, and keeps what it is asked."""

    version = SimpleNamespace(
        version="3", run_id="ab" * 16, coverage=0.875,
        calibration_facts=CalibrationFacts(
            kind="sets", coverage=0.9, available=True, shift=0.0, over="every group", groups=3, n_test=60, missing=0,
            most_coverage=0.98, scale=None,
        ),
    )
    target = Served.target

    def __init__(self) -> None:
        self.predictors = self
        self.asked: list[Any] = []

    def diagnoser(self, *given: Any) -> Contracted:
        self.asked.append(given)
        return self

    def diagnose(self, *given: Any) -> tuple[Any, ...]:
        self.asked.append(given)
        return ()

    estimator, estimate = diagnoser, diagnose


def test_the_contracts_way_asks_as_the_quick_one_does() -> None:
    beside: dict[str, Any] = {"samples": SAMPLES, "units": UNITS, "coverage": 0.95, "alias": "7"}
    one: Any = Contracted()
    diagnosed = endpoints.diagnose("pumps", DiagnoseRequest(**beside), one, one)
    assert one.asked == [("pumps", "7"), (tuple(SAMPLES), UNITS, 0.95)]
    assert (diagnosed.model_version, diagnosed.calibration) == ("3", one.version.calibration_facts)
    other: Any = Contracted()
    estimated = endpoints.estimate("pumps", EstimateRequest(**beside, confidence=0.75), other, other)
    assert other.asked == [("pumps", "7"), (tuple(SAMPLES), UNITS, 0.75, 0.95)]
    assert (estimated.target, estimated.unit, estimated.held_out_coverage) == ("leak_area", "mm^2", 0.875)
    assert estimated.calibration == one.version.calibration_facts
