"""Answers written by the column are those of objects, and those of each sample alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.conformal.grid import score_grid
from services.contracts.evaluation.calibration import Calibration, CountedRows
from services.contracts.evaluation.diagnosis import Diagnosis
from services.contracts.evaluation.estimate import Estimate
from services.contracts.evaluation.scores import ErrorInterval
from services.contracts.machines.asset_type import AssetType
from services.contracts.machines.target import Target
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.predictor import written
from services.predictor.estimator import Estimator
from services.predictor.predictor import Predictor
from tests.versions import a_version

N = written.FEW + 30
GRID = score_grid()
FOUR = [[1.0, 0.0, 0.5, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0, -1.0], [0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, -3.0, 1.0]]
PLANES = {"two": [[4.0, -2.0, 0.0, 1.0, 0.25]], "four": FOUR, "nothing pushes": [[0.0, 0.0, 0.0, 0.0, 1.0]]}


def counted(kind: str) -> Calibration:
    held = tuple(np.where(GRID >= 0.3, 200, 100) / 201.0)
    size = tuple(np.where(GRID >= 1.0, 200, 100) / 201.0)
    names = {"error": held} if kind == "sets" else {"absolute": held[len(GRID) // 2 :]}
    return Calibration.model_validate({
        "kind": kind, "grid": tuple(GRID.tolist()), "groups": (CountedRows(n_test=200),),
        "scale": 2.0 if kind == "sets" else None, "held": {**names, "size": size, "reach": size},
    })


def samples(n: int, seed: int = 3) -> list[dict[str, float]]:
    """Some outside their ranges, some without the optional feature, some in the middle, where nothing pushes."""
    rng = np.random.default_rng(seed)
    names = ("flow_mean", "flow_ripple", "pressure", "oil_temperature")
    made = [
        dict(zip(names, row, strict=True))
        for row in rng.uniform([-5, -2, 100, -30], [90, 12, 300, 150], size=(n, 4)).tolist()
    ]
    for sample in made[::3]:
        del sample["oil_temperature"]
    made[1] = {"flow_mean": 40, "flow_ripple": 5, "pressure": 200, "oil_temperature": 60}
    return made


def near(said: Any, wanted: Any) -> bool:
    """Alike but for the last bits of a number: a batch is multiplied in another order than a row."""
    if isinstance(wanted, dict):
        return said.keys() == wanted.keys() and all(near(said[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list | tuple):
        return len(said) == len(wanted) and all(map(near, said, wanted))
    return said == pytest.approx(wanted, abs=1e-12) if type(wanted) is float else said == wanted


@pytest.mark.parametrize("planes", PLANES)
@pytest.mark.parametrize("calibrated", [False, True])
def test_diagnoses_by_the_column_are_those_of_each_alone(
    make_version: Callable[..., ModelVersion], planes: str, calibrated: bool
) -> None:
    version = make_version(PLANES[planes])
    if calibrated:
        version = version.model_copy(update={"calibration": counted("sets")})
    predictor, asked = Predictor(version, abstain_below_radius=0.05), samples(N)
    texts = predictor.written(predictor.read(asked))
    whole = [Diagnosis.model_validate_json(text) for text in texts]
    assert whole == list(predictor.diagnose(asked))
    for text, sample in zip(texts, asked, strict=True):
        (alone,) = predictor.diagnose([sample])
        said = json.loads(text)
        assert list(said) == list(Diagnosis.model_fields)
        assert near(said, alone.model_dump(mode="json"))
    if planes == "two":
        assert any(each.abstained for each in whole) and not all(each.abstained for each in whole)


def test_a_unit_with_marks_of_json_in_it_is_written_as_it_is(make_version: Callable[..., ModelVersion]) -> None:
    version, unit = make_version(PLANES["two"]), 'mm " \\ µ'
    odd = tuple(feature.model_copy(update={"unit": unit}) for feature in version.asset_type.features)
    kind = version.asset_type.model_copy(update={"features": odd})
    predictor = Predictor(version.model_copy(update={"asset_type": kind}))
    told = [json.loads(text)["contributing_sensors"] for text in predictor.written(predictor.read(samples(N)))]
    assert {sensor["unit"] for each in told for sensor in each} == {unit}


@pytest.mark.parametrize("calibrated", [False, True])
def test_estimates_by_the_column_are_those_of_each_alone(
    make_version: Callable[..., ModelVersion], calibrated: bool
) -> None:
    goal = Target(name="wear", unit='mm "', low=1.0, high=5.0)
    kind: AssetType = make_version(PLANES["two"]).asset_type.model_copy(update={"target": goal})
    spec = TrainingSpec.model_validate({"loss": {"name": "pinball", "quantile": 0.75}})
    version = a_version(
        kind, np.array([[0.4, -0.3, 0.1, 0.9, 0.1]]), spec=spec,
        error_interval=ErrorInterval.implied(spec.loss.loss, goal, 0.02, 0.9),
        calibration=counted("absolute") if calibrated else None,
    )
    estimator, asked = Estimator(version), samples(N)
    texts = estimator.written(estimator.read(asked), 0.8)
    assert [Estimate.model_validate_json(text) for text in texts] == list(estimator.estimate(asked, confidence=0.8))
    for text, sample in zip(texts, asked, strict=True):
        (alone,) = estimator.estimate([sample], confidence=0.8)
        assert list(json.loads(text)) == list(Estimate.model_fields)
        assert near(json.loads(text), alone.model_dump(mode="json"))
    assert (json.loads(texts[0])["conformal"] is not None) == calibrated


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=40))
def test_numbers_are_read_back_bit_for_bit_and_what_json_has_not_is_null(column: list[float]) -> None:
    said = [json.loads(text) for text in written.numbers(np.array(column))]
    assert said == [value if np.isfinite(value) else None for value in column]
