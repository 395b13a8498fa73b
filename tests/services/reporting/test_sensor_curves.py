"""Curves of sensors: in their units, the very scores that the predictor gives, drawn without script."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from models.multiclass import predict_scores
from services.contracts.history.run import Run
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.machines.target import Target
from services.contracts.machines.value_range import Ranges
from services.contracts.problems.lift import (
    FourierLiftSpec,
    LiftSpec,
    ProductLiftSpec,
    SplineLiftSpec,
    lifted_size,
    pinned,
)
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.report import ModelReport, SensorCurve
from services.reporting.curve_chart import HEIGHT, WIDTH, curve_chart, curve_charts
from services.reporting.html import labels
from services.reporting.model_report import model_report
from services.reporting.report_page import report_page
from services.reporting.sensor_curves import sensor_curves
from tests.versions import a_version

FEATURES = (
    Feature(name="flow", unit="l/min", low=10.0, high=80.0), Feature(name="p_in", unit="bar", low=-1.0, high=4.0),
)
CLASSES = tuple(FaultClass(name=name, severity=k) for k, name in enumerate(("healthy", "leak", "worn")))
TARGET = Target(name="area", unit="mm^2", low=1.0, high=5.0)


BY_LOG = (FEATURES[0].model_copy(update={"scale": "log"}), FEATURES[1])


def version_of(n_classes: int, segments: int | None, features: tuple[Feature, ...] = FEATURES) -> ModelVersion:
    kind = AssetType(name="pump", features=features, fault_classes=CLASSES[:n_classes], target=TARGET)
    lift = None if segments is None else pinned(SplineLiftSpec(kind="spline", segments=segments), 2)
    heads, size = (1 if n_classes < 3 else n_classes), 2 * (segments or 1) + 1
    loss = {} if n_classes else {"loss": {"name": "huber"}}
    return a_version(
        kind, np.random.default_rng(3).normal(size=(heads, size)),
        spec=TrainingSpec.model_validate({"lift": lift, **loss}),
    )


@pytest.mark.parametrize("segments", [None, 3, 4])
def test_a_sensor_scaled_by_logarithms_has_a_curve_that_is_right_between_its_readings(segments: int | None) -> None:
    """Knots are at equal ratios; a straight line over readings is wrong between them, so there are more places."""
    version = version_of(2, segments, BY_LOG)
    first = sensor_curves(version)[0]
    for knot in 10.0 * 8.0 ** (np.arange((segments or 1) + 1) / (segments or 1)):
        assert np.abs(np.array(first.readings) / knot - 1).min() < 1e-9
    middle = BY_LOG[1].middle
    readings = np.sort(np.append(first.readings, np.linspace(10.0, 80.0, 201)))
    values = np.column_stack([readings, np.full(len(readings), middle)])
    scores = predict_scores(version.weights, version.lifted(Ranges(BY_LOG).scale(values)))[:, 0]
    at_middle = predict_scores(version.weights, version.lifted(np.full((1, 2), 0.5)))[0, 0]
    drawn = np.interp(readings, first.readings, first.heights)
    np.testing.assert_allclose(drawn, scores - at_middle, atol=2e-3 * np.ptp(scores))
    np.testing.assert_allclose(first.heights, drawn[np.searchsorted(readings, first.readings)], atol=1e-12)


@pytest.mark.parametrize("segments", [None, 1, 3, 4])
@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_the_curves_sum_to_the_scores(n_classes: int, segments: int | None) -> None:
    version = version_of(n_classes, segments)
    curves, draw = sensor_curves(version), np.random.default_rng(0)
    rows = draw.uniform(size=(30, 2))
    values = Ranges(FEATURES).low + rows * (Ranges(FEATURES).high - Ranges(FEATURES).low)
    scale = TARGET.width if n_classes == 0 else 1.0
    scores = scale * predict_scores(version.weights, version.lifted(rows))
    middle = scale * predict_scores(version.weights, version.lifted(np.full((1, 2), 0.5)))
    names = {0: [""], 2: ["leak"], 3: ["healthy", "leak", "worn"]}[n_classes]
    assert len(curves) == 2 * len(names)
    for head, name in enumerate(names):
        lines = [curve for curve in curves if curve.fault_class == name]
        assert [(line.sensor, line.unit) for line in lines] == [("flow", "l/min"), ("p_in", "bar")]
        drawn = sum(np.interp(values[:, j], line.readings, line.heights) for j, line in enumerate(lines))
        np.testing.assert_allclose(drawn, scores[:, head] - middle[0, head], atol=1e-12)


def test_where_classes_are_one_problem_the_curves_sum_to_the_scores_above_their_mean() -> None:
    """The plane of the first class is 0 by convention: what is drawn of it is not."""
    version = version_of(3, None)
    joint = version.spec.model_copy(update={"multi_class": "crammer_singer"})
    planes = version.weights - version.weights[0]
    curves = sensor_curves(a_version(version.asset_type, planes, spec=joint))
    centred = planes - planes.mean(axis=0)
    for curve in curves:
        head, sensor = version.asset_type.class_names.index(curve.fault_class), ("flow", "p_in").index(curve.sensor)
        assert curve.heights[-1] - curve.heights[0] == pytest.approx(centred[head, sensor])


@pytest.mark.parametrize("given", [
    FourierLiftSpec(components=4, bandwidth=0.5), ProductLiftSpec(kind="products", features=(0, 1)),
    ProductLiftSpec(kind="products", features=(0, 1), segments=4),
], ids=["fourier", "products", "products of lines"])
def test_a_lift_that_is_no_sum_over_sensors_has_no_curves(given: LiftSpec) -> None:
    kind = AssetType(name="pump", features=FEATURES, fault_classes=CLASSES[:2])
    spec = TrainingSpec(lift=pinned(given, 2))
    assert sensor_curves(a_version(kind, np.ones((1, lifted_size(given, 2) + 1)), spec=spec)) == ()


def test_a_network_has_no_curves() -> None:
    kind = AssetType(name="pump", features=FEATURES, fault_classes=CLASSES[:2])
    spec = TrainingSpec.model_validate({"loss": {"name": "cross_entropy"}, "network": {"hidden": 3}})
    assert sensor_curves(a_version(kind, np.ones((1, 17)), spec=spec)) == ()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_pictures_hold_their_lines_and_no_script(n_classes: int, run: Run) -> None:
    report = model_report(version_of(n_classes, 4), run, ())
    assert ModelReport.model_validate(json.loads(report.model_dump_json())) == report
    charts = curve_charts(report.curves, most=10)
    assert len(charts) == 2 and len(curve_charts(report.curves, most=1)) == 1
    for chart in charts:
        root = ElementTree.fromstring(chart)
        lines = [e for e in root.iter() if e.tag.endswith("polyline")]
        assert len(lines) == 2 * (1 if n_classes == 2 else 3)
        for x, y in (pair.split(",") for line in lines for pair in line.attrib["points"].split()):
            assert 0 <= float(x) <= WIDTH and 0 <= float(y) <= HEIGHT
    page = report_page(report)
    assert "What each sensor says" in page and "p_in (bar)" in page and "<script" not in page
    assert all(chart in page for chart in charts)


@pytest.mark.parametrize(("n_classes", "of"), [(2, "the score of a class"), (0, "area in mm^2")])
def test_the_page_says_what_the_curves_add_to_and_how_many_sensors_it_leaves_out(
    n_classes: int, of: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    report, left_out = model_report(version_of(n_classes, 4), run, ()), "sensors that add the most"
    page = report_page(report)
    assert f"What each reading adds to {of}, from 0 in the middle" in page and left_out not in page
    monkeypatch.setattr("services.reporting.report_page.MOST_SENSORS", 1)
    assert f"The 1 of 2 {left_out}" in report_page(report)


def test_long_names_are_within_the_picture() -> None:
    """Sensors and classes may share most of a name: one that is cut at the edge may be any of them."""
    sensor = f"bearing_07_{'x' * 52}"
    classes = [f"{'outer_race_defect_' * 3}{n}" for n in (1, 2)]
    curve = SensorCurve(sensor=sensor, unit="µm/s²", readings=(-1e-9, 1e-9), heights=(-1.0, 1.0), fault_class="ok")
    for unit, cut in (("µm/s²", False), ("Ω" * 200, True)):
        lines = [curve.model_copy(update={"unit": unit, "fault_class": name}) for name in classes]
        root = ElementTree.fromstring(curve_chart(lines, -1.0, 1.0))
        texts = [each for each in root if each.tag.endswith("text")]
        assert {each.text for each in texts} > set(classes)
        for each in texts:
            x, wide = float(each.attrib["x"]), 6.8 * len(each.text or "")
            begins = x - {"start": 0.0, "middle": wide / 2, "end": wide}[each.attrib["text-anchor"]]
            assert 0 <= begins and begins + wide <= float(root.attrib["width"])
        label = next(each.text or "" for each in texts if (each.text or "").startswith(sensor))
        assert label.endswith("…") is cut and (root[0].text or "") == f"{sensor} ({unit})"


def test_labels_have_as_many_digits_as_tell_them_apart() -> None:
    assert labels((49.995, 50.005)) == ["49.995", "50.005"] and labels((1e9, 1e9 + 1)) == ["1000000000", "1000000001"]
    assert labels((-5e-9, 0.0, 5e-9)) == ["-5e-09", "0", "5e-09"] and labels((1495.5, 12345.6)) == ["1496", "1.235e+04"]


def test_a_report_of_a_flat_model_can_be_drawn() -> None:
    kind = AssetType(name="pump", features=FEATURES, fault_classes=CLASSES[:2])
    for chart in curve_charts(sensor_curves(a_version(kind, np.zeros((1, 3)))), most=5):
        ElementTree.fromstring(chart)
