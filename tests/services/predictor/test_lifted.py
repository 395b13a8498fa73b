"""Diagnoses of a lifted model: scores of lifted features, radii and shares in those of the sensors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mlflow.exceptions import MlflowException

from models.basics import TransportNorm
from models.features.fourier import fourier_lift
from models.features.products import ProductLift
from models.multiclass import predict_class
from services.contracts.problems.lift import (
    FourierLiftSpec,
    LiftSpec,
    NystromLiftSpec,
    ProductLiftSpec,
    SplineLiftSpec,
    draw_lift,
    lifted_size,
    pinned,
)
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.contracts.wire.codec import digest
from services.predictor.predictor import Predictor
from services.registry.model_files import document_text, read_document
from services.registry.pyfunc_model import ServedModel

N_FEATURES = 3
MakeVersion = Callable[..., ModelVersion]


LIFTS: dict[str, LiftSpec] = {
    "fourier": FourierLiftSpec(components=10, bandwidth=0.6, seed=9),
    "fourier alone": FourierLiftSpec(components=10, bandwidth=0.6, seed=9, keep_linear=False),
    "spline": SplineLiftSpec(kind="spline", segments=4),
    "products": ProductLiftSpec(kind="products", features=(2, 0), squares=True),
    "products of lines": ProductLiftSpec(kind="products", features=(2, 0), squares=True, segments=3),
    "nystrom": NystromLiftSpec(kind="nystrom", components=6, bandwidth=0.5, seed=1),
    "nystrom at points": NystromLiftSpec(
        kind="nystrom", points=((0.1, 0.5, 0.9), (0.4, 0.2, 1.0)), bandwidth=0.4, keep_linear=False
    ),
}


def lifted(make_version: MakeVersion, *, heads: int, norm: str, kind: str = "fourier") -> ModelVersion:
    plain = make_version(np.zeros((heads, N_FEATURES + 1)), transport_norm=norm)
    spec = LIFTS[kind]
    size = lifted_size(spec, N_FEATURES) + 1
    fields = {name: getattr(plain, name) for name in ModelVersion.model_fields} | {
        "spec": TrainingSpec.model_validate({"transport_norm": norm, "lift": pinned(spec, N_FEATURES)}),
        "weights": np.random.default_rng(heads).normal(size=(heads, size)),
    }
    return ModelVersion(**fields)


def samples_of(version: ModelVersion, scaled: np.ndarray[Any, Any]) -> list[dict[str, float]]:
    features = version.asset_type.features
    return [
        {f.name: f.low + (f.high - f.low) * x for f, x in zip(features, row, strict=True)} for row in scaled.tolist()
    ]


@pytest.mark.parametrize("kind", LIFTS)
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("heads", [1, 3])
def test_no_move_of_the_sensors_shorter_than_the_radius_changes_the_class(
    make_version: MakeVersion, heads: int, norm: str, kind: str
) -> None:
    version = lifted(make_version, heads=heads, norm=norm, kind=kind)
    predictor, draw = Predictor(version), np.random.default_rng(2)
    points = draw.uniform(0.25, 0.75, (30, N_FEATURES))
    found = predictor.diagnose(samples_of(version, points))
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    for point, diagnosis in zip(points, found, strict=True):
        radius = diagnosis.robustness_radius if diagnosis.robustness_radius is not None else np.inf
        moves = draw.normal(size=(40, N_FEATURES))
        reach = min(radius, 0.24) * (1 - 1e-6)
        moves *= (reach / np.linalg.norm(moves, ord=order, axis=1))[:, None]
        moved = predictor.diagnose(samples_of(version, point + moves))
        assert {each.fault_class for each in moved} == {diagnosis.fault_class}


def test_scores_and_contributions_are_those_of_the_lift(make_version: MakeVersion) -> None:
    version = lifted(make_version, heads=1, norm="l2")
    point = np.array([[0.3, 0.6, 0.9]])
    (found,) = Predictor(version).diagnose(samples_of(version, point))
    lift = fourier_lift(N_FEATURES, 10, bandwidth=0.6, seed=9)
    score = float((lift.apply(point) @ version.weights[0, :-1] + version.weights[0, -1])[0])
    assert found.scores == pytest.approx({"healthy": -score, "leak": score})
    sign = 1.0 if score > 0 else -1.0
    shares = sign * lift.gradient(point, version.weights[:, :-1])[0] * (point[0] - 0.5)
    names = version.asset_type.feature_names
    assert {s.feature: s.contribution for s in found.contributing_sensors} == pytest.approx(
        dict(zip(names, shares.tolist(), strict=True))
    )


def test_contributions_to_a_model_of_splines_sum_to_the_score(make_version: MakeVersion) -> None:
    predictor = Predictor(lifted(make_version, heads=1, norm="l2", kind="spline"))
    points = np.vstack([np.random.default_rng(5).uniform(size=(20, N_FEATURES)), np.full((1, N_FEATURES), 0.5)])
    *found, middle = predictor.diagnose(samples_of(predictor.version, points))
    for each in found:
        shares = sum(sensor.contribution for sensor in each.contributing_sensors)
        assert shares == pytest.approx(each.scores[each.fault_class] - middle.scores[each.fault_class])


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_the_radius_of_a_model_of_splines_is_nearly_reached(make_version: MakeVersion, norm: str) -> None:
    version = lifted(make_version, heads=1, norm=norm, kind="spline")
    predictor, draw = Predictor(version), np.random.default_rng(6)
    line = np.linspace(0.0, 1.0, 81)
    grid = np.stack(np.meshgrid(line, line, line), axis=-1).reshape(-1, N_FEATURES)
    points = draw.uniform(size=(30, N_FEATURES))
    lift = draw_lift(version.spec.lift, N_FEATURES)
    assert lift is not None
    names = np.array(version.asset_type.class_names)
    classes = names[predict_class(version.weights, lift.apply(grid))]
    order, shares = {"l1": 1, "l2": 2, "linf": np.inf}[norm], list[float]()
    for point, diagnosis in zip(points, predictor.diagnose(samples_of(version, points)), strict=True):
        others = grid[classes != diagnosis.fault_class]
        nearest = np.linalg.norm(others - point, ord=order, axis=1).min()
        assert diagnosis.robustness_radius is not None and diagnosis.robustness_radius <= nearest
        if nearest > 0.1:
            shares.append(diagnosis.robustness_radius / nearest)
    assert shares and min(shares) > 0.75 and np.median(shares) > 0.85  # the grid is 0.0125 wide


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize(("heads", "kind"), [(1, "fourier"), *((3, kind) for kind in LIFTS)])
def test_the_served_form_answers_what_the_predictor_does(
    make_version: MakeVersion, tmp_path: Path, heads: int, kind: str, norm: TransportNorm
) -> None:
    version = lifted(make_version, heads=heads, norm=norm, kind=kind)
    (tmp_path / "model.json").write_text(document_text(version))
    served = ServedModel()
    served.load_context(SimpleNamespace(artifacts={"model": str(tmp_path / "model.json")}))
    samples = samples_of(version, np.random.default_rng(1).uniform(size=(20, N_FEATURES)))
    answers = served.predict(None, pd.DataFrame(samples))
    lift, heads_of = draw_lift(version.spec.lift, N_FEATURES), version.weights[:, :-1]
    assert lift is not None
    planes = dict(zip(answers[0]["scores"], heads_of if heads > 1 else np.vstack([-heads_of, heads_of]), strict=True))
    for answer, expected in zip(answers, Predictor(version).diagnose(samples), strict=True):
        assert answer["fault_class"] == expected.fault_class
        assert answer["scores"] == pytest.approx(expected.scores, rel=1e-12)
        top, plane = answer["scores"][expected.fault_class], planes[expected.fault_class]
        simpler = min(  # the served file goes by how steep scores can be anywhere
            (top - answer["scores"][name]) / lift.steepness(plane - other, norm)
            for name, other in planes.items() if name != expected.fault_class
        )
        assert answer["robustness_radius"] == pytest.approx(simpler, rel=1e-12)
        if expected.robustness_radius is not None:
            assert 0 < answer["robustness_radius"] <= expected.robustness_radius * (1.0 + 1e-12)


def test_products_of_before_there_were_segments_are_served_as_they_were(
    make_version: MakeVersion, tmp_path: Path
) -> None:
    document = json.loads(document_text(lifted(make_version, heads=1, norm="l2", kind="products")))
    assert document["spec"]["lift"].pop("segments") == 1
    text = json.dumps(document)
    (tmp_path / "model.json").write_text(text)
    served = ServedModel()
    served.load_context(SimpleNamespace(artifacts={"model": str(tmp_path / "model.json")}))
    assert served.lift.segments == 1 and served.lift.ramps is None
    assert served.lift.fingerprint == "87a22f34cfce7699d452b0ca856cdfb99021b793659bd96646b9f00a8bf9ea76"
    stored = read_document(text, digest(text.encode()), "here").lift
    assert isinstance(stored, ProductLift) and stored.segments == 1 and stored.fingerprint == served.lift.fingerprint


def test_the_served_form_refuses_a_lift_that_it_draws_otherwise(make_version: MakeVersion, tmp_path: Path) -> None:
    version = lifted(make_version, heads=1, norm="l2")
    text = document_text(version).replace('"seed": 9', '"seed": 10')
    (tmp_path / "model.json").write_text(text)
    with pytest.raises(MlflowException, match="not the one of the training"):
        ServedModel().load_context(SimpleNamespace(artifacts={"model": str(tmp_path / "model.json")}))
