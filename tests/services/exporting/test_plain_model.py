"""What both exports are made of: test vectors that reach what they are to test, and what no export can do."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from services.contracts.errors import ConflictError
from services.contracts.machines.asset_type import Feature
from services.contracts.problems.lift import LiftSpec, NystromLiftSpec
from services.contracts.versions.model_version import ModelVersion
from services.exporting.c99_header import c99_header
from services.exporting.onnx_model import onnx_model
from services.exporting.plain_model import PlainModel


@pytest.mark.parametrize("n_classes", [0, 2, 4])
def test_vectors_reach_ends_both_sides_of_them_and_missing_values(
    make_model: Callable[..., ModelVersion], n_classes: int, features: tuple[Feature, ...]
) -> None:
    """So that a self test notices a clip, or a middle, that is wrong: with fewer it could not."""
    version = make_model(None, n_classes, features)
    vectors = PlainModel(version).test_vectors()
    low, high = ([getattr(feature, end) for feature in features] for end in ("low", "high"))
    assert len(vectors.values) == 16
    assert vectors.values[0].tolist() == low and vectors.values[1].tolist() == high
    assert (vectors.values[2] < low).all() and (vectors.values[3] > high).all()
    missing = np.isnan(vectors.values)
    assert missing[4].tolist() == [not feature.required for feature in features] and not missing[:4].any()
    inside = (vectors.values[5:] > low) & (vectors.values[5:] < high)
    assert (inside.sum(axis=0) >= 6).all() and np.isfinite(vectors.scores).all()
    if n_classes:
        assert vectors.classes == vectors.scores.argmax(axis=1).tolist()


class Unknown:
    """A lift of a kind that no export has."""


def test_a_lift_that_no_export_knows_is_refused(
    make_model: Callable[..., ModelVersion], monkeypatch: pytest.MonkeyPatch
) -> None:
    version = make_model()
    monkeypatch.setitem(version.__dict__, "lift", Unknown())
    for export in (c99_header, onnx_model):
        with pytest.raises(ConflictError, match="a lift of the kind Unknown cannot be exported") as refused:
            export(version)
        assert refused.value.code == "not_exportable"


@pytest.mark.parametrize(("low", "high", "scale"), [
    (101_325.0, 101_325.5, "linear"), (1e-50, 2e-50, "linear"), (-1e39, 1e39, "linear"), (1e-60, 1.0, "log"),
    (1e6, 1e6 + 0.5, "log"),
])
def test_a_range_that_32_bits_cannot_hold_is_refused_there_by_its_name(
    make_model: Callable[..., ModelVersion], low: float, high: float, scale: str
) -> None:
    """A header would fail its own self test, and an ONNX model would answer otherwise without a word."""
    fine = Feature(name="flow", unit="l/min", low=0.0, high=9.0)
    narrow = Feature.model_validate({"name": "air", "unit": "Pa", "low": low, "high": high, "scale": scale})
    version = make_model(features=(fine, narrow, fine.model_copy(update={"name": "oil"})))
    said = re.escape(f"cannot tell readings of air from {low!r} to {high!r} Pa apart well enough")
    for export in (c99_header, onnx_model):
        with pytest.raises(ConflictError, match=f"numbers of 32 bits {said}.*precision double") as refused:
            export(version, single=True)
        assert refused.value.code == "not_exportable" and export(version)


@pytest.mark.parametrize(("size", "n_classes", "fits"), [(1e38, 2, True), (1e39, 2, False), (1e39, 0, False)])
def test_weights_beyond_32_bits_are_refused_there(
    make_model: Callable[..., ModelVersion], size: float, n_classes: int, fits: bool
) -> None:
    """In 32 bits they would be infinite, and no answer a number."""
    sensor = Feature(name="flow", unit="l/min", low=0.0, high=1.0)
    version = make_model(n_classes=n_classes, features=(sensor,))
    version = version.model_copy(update={"weights": np.array([[size, 0.0]])})
    for export in (c99_header, onnx_model):
        assert export(version)
        if fits:
            assert export(version, single=True)
            continue
        with pytest.raises(ConflictError, match=r"end at 3.4e\+38, and this version has larger weights or answers"):
            export(version, single=True)


@pytest.mark.parametrize(("components", "keep_linear", "fits"), [
    (10, True, True), (10, False, True), (800, True, False), (800, False, False),
])
def test_a_lift_that_32_bits_blur_is_refused_there(
    make_model: Callable[..., ModelVersion], components: int, keep_linear: bool, fits: bool
) -> None:
    """Whitening of many points near one another makes the rounding of their distances a thousand times larger."""
    lift = NystromLiftSpec(kind="nystrom", components=components, bandwidth=2.0, seed=1, keep_linear=keep_linear)
    version = make_model(lift, 4)
    version = version.model_copy(update={"weights": 100.0 * version.weights})
    if fits:
        assert c99_header(version, single=True) and onnx_model(version, single=True)
        return
    assert PlainModel(version)
    for export in (c99_header, onnx_model):
        with pytest.raises(ConflictError, match="too coarse for this version's weights, or .*lift.*precision double"):
            export(version, single=True)


def test_weights_that_32_bits_round_by_more_than_they_leave_are_refused_there(
    make_model: Callable[..., ModelVersion], make_network: Callable[..., ModelVersion]
) -> None:
    """Of two features at the high end, 0.1 is left of weights that 32 bits have to 0.03."""
    version = make_model().model_copy(update={"weights": np.array([[1e6 / 3.0, 0.1 - 1e6 / 3.0, 0.0, 0.0]])})
    with pytest.raises(ConflictError, match="too coarse for this version's weights"):
        PlainModel(version, single=True)
    network = make_network()
    # Two units of five see the first feature, and their outer weights cancel.
    inner = np.zeros((5, 3))
    inner[:2, 0] = 1.0
    outer = np.array([[0.0] * 5, [1e6 / 3.0, 0.1 - 1e6 / 3.0, 0.0, 0.0, 0.0]])
    weights = np.concatenate([inner.ravel(), np.zeros(5), outer.ravel(), np.zeros(2)])[None]
    with pytest.raises(ConflictError, match="too coarse for this version's weights"):
        PlainModel(network.model_copy(update={"weights": weights}), single=True)


def test_usual_ranges_are_exported_in_32_bits(
    make_model: Callable[..., ModelVersion], lift: LiftSpec | None, features: tuple[Feature, ...]
) -> None:
    for n_classes in (0, 2, 4):
        PlainModel(make_model(lift, n_classes, features), single=True)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_usual_networks_are_exported_in_32_bits(
    make_network: Callable[..., ModelVersion], n_classes: int, features: tuple[Feature, ...]
) -> None:
    PlainModel(make_network(n_classes, features), single=True)


@pytest.mark.parametrize(("weights", "refused"), [([1.0, 0.0, 0.0, 0.0], False), ([1.0, 0.01, 0.0, 0.0], True)])
def test_what_32_bits_must_tell_apart_goes_by_what_it_moves(
    make_model: Callable[..., ModelVersion], weights: list[float], refused: bool
) -> None:
    usual = Feature(name="speed", unit="rpm", low=2990.0, high=3010.0)
    narrow = Feature(name="air", unit="Pa", low=101_325.0, high=101_325.02)
    version = make_model(features=(usual, narrow, usual.model_copy(update={"name": "load"})))
    version = version.model_copy(update={"weights": np.array([weights])})
    if refused:
        with pytest.raises(ConflictError, match="readings of air"):
            PlainModel(version, single=True)
    else:
        assert c99_header(version, single=True) and onnx_model(version, single=True)
