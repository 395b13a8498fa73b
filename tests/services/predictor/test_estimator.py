"""Estimates of a target: value, interval and sensors, the same from the predictor and from MLflow's serving file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from models.conformal.grid import score_grid
from models.conformal.spread import STEPS
from models.features.fourier import fourier_lift
from services.contracts.errors import ConflictError, InvalidInputError
from services.contracts.evaluation.calibration import Calibration, CountedRows
from services.contracts.evaluation.scores import ErrorInterval
from services.contracts.machines.target import Target
from services.contracts.machines.value_range import Ranges
from services.contracts.problems.lift import FourierLiftSpec, pinned
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.predictor.cache import PredictorCache
from services.predictor.estimator import Estimator
from services.predictor.tally import Tally
from services.registry.model_files import document_text
from services.registry.pyfunc_model import ServedModel

WEAR = Target(name="wear", unit="mm", low=1.0, high=5.0)
LIFT = pinned(FourierLiftSpec(components=6, bandwidth=0.7, seed=3), 4)


@pytest.fixture
def make_estimate(make_version: Callable[..., ModelVersion]) -> Callable[..., ModelVersion]:
    def make(lift: FourierLiftSpec | None = None, risk: float | None = 0.02) -> ModelVersion:
        plain = make_version(np.zeros((1, 5)))
        size = 5 if lift is None else 11
        spec = TrainingSpec.model_validate({"loss": {"name": "pinball", "quantile": 0.75}, "lift": lift})
        around = None if risk is None else ErrorInterval.implied(spec.loss.loss, WEAR, risk, 0.9)
        kind = plain.asset_type.model_copy(update={"target": WEAR})
        fields = {name: getattr(plain, name) for name in ModelVersion.model_fields} | {
            "spec": spec, "asset_type": kind, "error_interval": around, "coverage": 0.97,
            "weights": np.random.default_rng(5).normal(size=(1, size)) / 4,
        }
        return ModelVersion(**fields)

    return make


def middle(version: ModelVersion) -> dict[str, float]:
    return {feature.name: (feature.low + feature.high) / 2 for feature in version.asset_type.features}


@pytest.mark.parametrize("lift", [None, LIFT])
def test_value_and_interval_are_in_the_targets_unit(
    make_estimate: Any, sample: dict[str, float], lift: FourierLiftSpec | None
) -> None:
    version = make_estimate(lift)
    estimator, scaled = Estimator(version), Ranges(version.asset_type.features).scale(np.array(list(sample.values())))
    seen = scaled if lift is None else fourier_lift(4, 6, bandwidth=0.7, seed=3).apply(scaled[None])[0]
    (found,) = estimator.estimate([sample], confidence=0.8)
    value = 1.0 + 4.0 * (seen @ version.weights[0, :-1] + version.weights[0, -1])
    assert found.value == pytest.approx(value) and found.unit == "mm"
    level = 0.02 / 0.2
    assert found.interval.high == pytest.approx(value + 4.0 * level / 0.75)
    assert value - 4.0 * level / 0.25 < 1.0, "the interval is cut to the target's range"
    assert found.interval.low == 1.0
    if lift is None:
        (centre,) = estimator.estimate([middle(version)])
        pushed = sum(sensor.contribution for sensor in found.contributing_sensors)
        assert pushed == pytest.approx(found.value - centre.value)


@pytest.mark.parametrize("lift", [None, LIFT])
def test_mlflows_serving_file_answers_the_same(
    make_estimate: Any, sample: dict[str, float], tmp_path: Path, lift: FourierLiftSpec | None
) -> None:
    version, served = make_estimate(lift), ServedModel()
    (tmp_path / "model.json").write_text(document_text(version))
    served.load_context(SimpleNamespace(artifacts={"model": str(tmp_path / "model.json")}))
    samples = [sample, middle(version)]
    answers = served.predict(None, pd.DataFrame(samples))
    for mine, theirs in zip(Estimator(version).estimate(samples), answers, strict=True):
        assert theirs["value"] == pytest.approx(mine.value, rel=1e-12) and theirs["unit"] == "mm"
        ends = {name: getattr(mine.interval, name) for name in ("low", "high", "confidence")}
        assert theirs["interval"] == pytest.approx(ends, rel=1e-12)


def test_samples_are_read_as_for_a_diagnosis(make_estimate: Any, sample: dict[str, float]) -> None:
    estimator = Estimator(make_estimate())
    (found,) = estimator.estimate([{**sample, "flow_mean": 99.0}])
    assert found.clipped == ("flow_mean",)
    for wrong, said in (({"flow": 1.0}, "unknown feature 'flow'"), ({"flow_mean": 1.0}, "missing required feature")):
        with pytest.raises(InvalidInputError, match=said):
            estimator.estimate([wrong])
    with pytest.raises(InvalidInputError, match="feature flow_mean must be in l/min"):
        estimator.estimate([sample], {"flow_mean": "m3/h"})


def test_a_model_is_asked_only_for_what_it_is(
    make_estimate: Any, make_version: Callable[..., ModelVersion], sample: dict[str, float]
) -> None:
    shelf = {"wear": make_estimate(), "classes": make_version(np.zeros((1, 5)))}
    source: Any = SimpleNamespace(resolve=lambda name, _: "1", get=lambda name, _: shelf[name])
    cache = PredictorCache(source)
    assert cache.estimator("wear").estimate([sample]) and cache.diagnoser("classes").diagnose([sample])
    with pytest.raises(ConflictError, match="model wear estimates wear in mm and tells no classes") as refusal:
        cache.diagnoser("wear")
    assert refusal.value.code == "wrong_task" and str(refusal.value).endswith(": ask /v1/models/wear/estimate")
    with pytest.raises(ConflictError, match="model classes tells classes and estimates no target") as refusal:
        cache.estimator("classes")
    assert refusal.value.code == "wrong_task" and str(refusal.value).endswith(": ask /v1/models/classes/diagnose")
    with pytest.raises(ConflictError, match="has no bound, so there is no interval"):
        Estimator(make_estimate(risk=None)).estimate([sample])


def test_the_conformal_interval_stands_beside_markovs_and_both_are_cut_to_the_range(
    make_estimate: Any, sample: dict[str, float]
) -> None:
    grid, n = score_grid(), 300
    half, full = grid[len(grid) // 2 :], np.full(len(grid), n / (n + 1.0))
    held = {
        "absolute": tuple(np.where(half >= 0.05, n, n // 2) / (n + 1.0)), "size": tuple(full.tolist()),
        "reach": tuple(np.where(grid >= 0.01, n, 0) / (n + 1.0)),
    }
    found = Calibration(kind="absolute", grid=tuple(grid.tolist()), groups=(CountedRows(n_test=n),), held=held)
    version = make_estimate().model_copy(update={"calibration": found})
    (told,) = Estimator(version).estimate([sample])
    size = 4.0 * grid[grid >= 0.05][0]
    assert told.conformal is not None and told.conformal.kind == "conformal" and told.conformal.confidence == 0.9
    assert told.conformal.high == pytest.approx(told.value + size)
    assert told.conformal.low == pytest.approx(max(told.value - size, 1.0))
    assert told.interval.high - told.interval.low > told.conformal.high - told.conformal.low
    (other,) = Estimator(version).estimate([sample], confidence=0.6, coverage=0.8)
    assert other.conformal is not None and (other.interval.confidence, other.conformal.confidence) == (0.6, 0.8)
    assert told.abstained and "farther from the middle" in told.reason
    (centre,) = Estimator(version).estimate([middle(version)])
    assert not told.conformal.low < 1.0 and centre.value >= 1.0
    tails = found.model_copy(update={"kind": "tails", "held": {
        "below": tuple(np.where(grid >= 0.1, n, 0) / (n + 1.0)),
        "above": tuple(np.where(grid <= -0.2, n, 0) / (n + 1.0)),
    }})
    (lopsided,) = Estimator(version.model_copy(update={"calibration": tails})).estimate([sample])
    assert lopsided.conformal is not None, "the target is the estimate less the residual"
    assert lopsided.conformal.high == pytest.approx(told.value + 4.0 * grid[grid >= 0.2][0])
    assert lopsided.conformal.low == pytest.approx(max(told.value - 4.0 * grid[grid >= 0.1][0], 1.0))
    steps = tuple((np.where(np.arange(STEPS) >= 300, n, 0) / (n + 1.0)).tolist())
    lags = {"below": (0,) * 10, "above": tuple(range(90, -10, -10))}
    fields = found.model_dump() | {"kind": "spread", "held": {"spread": steps}, "spread": lags}
    wide = Calibration.model_validate(fields)
    (by_tenth,) = Estimator(version.model_copy(update={"calibration": wide})).estimate([sample])
    low, high = wide.spread_ends(0.9)
    tenth = int(10 * (told.value - 1.0) / 4.0)
    assert by_tenth.conformal is not None and by_tenth.conformal.low > 1.0
    assert by_tenth.conformal.high == pytest.approx(min(told.value - 4.0 * low[tenth], 5.0))
    assert by_tenth.conformal.low == pytest.approx(max(told.value - 4.0 * high[tenth], 1.0))
    with pytest.raises(ConflictError, match="carries no calibration"):
        Estimator(make_estimate()).estimate([sample], coverage=0.9)


@pytest.mark.parametrize(("score", "strange"), [(0.5, False), (0.75, False), (0.25, False), (0.9, True), (0.1, True)])
def test_an_estimate_is_strange_as_far_from_the_middle_of_the_targets_range_as_plants_counted(
    make_estimate: Any, sample: dict[str, float], score: float, strange: bool
) -> None:
    grid, n = score_grid(), 300
    held = {
        "absolute": tuple(np.full(len(grid) - len(grid) // 2, n / (n + 1.0)).tolist()),
        "size": tuple(np.where(grid >= 0.3, n, 0) / (n + 1.0)), "reach": tuple(np.where(grid >= 0.6, n, 0) / (n + 1.0)),
    }
    found = Calibration(kind="absolute", grid=tuple(grid.tolist()), groups=(CountedRows(n_test=n),), held=held)
    changes = {"calibration": found, "weights": np.array([[0.0, 0.0, 0.0, 0.0, score]])}
    (told,) = Estimator(make_estimate().model_copy(update=changes)).estimate([sample])
    assert told.abstained == strange and ("its scores are larger" in told.reason) == strange


@pytest.mark.parametrize(("shift", "end"), [(9.0, 5.0), (-9.0, 1.0)])
def test_bare_values_are_cut_to_the_range_and_counted_like_estimates(
    make_estimate: Any, sample: dict[str, float], shift: float, end: float
) -> None:
    """What the Open Inference Protocol answers with."""
    version = make_estimate()
    version = version.model_copy(update={"weights": version.weights + np.array([[0.0, 0.0, 0.0, 0.0, shift]])})
    estimator, tally = Estimator(version), Tally()
    assert estimator.values(estimator.read([sample] * 3)).tolist() == [end] * 3
    assert [each.value for each in estimator.estimate([sample] * 3)] == [end] * 3
    counting = Estimator(version, tally=tally)
    counting.values(counting.read([sample] * 3))
    assert tally.answers() == {(version.name, version.version, None): 3}
