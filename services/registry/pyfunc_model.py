"""The served form of a model version: ``model.json`` and numpy, nothing of Ballast's.

MLflow copies this file into the model ("models from code") and runs it in the serving process, so it may import only
what ``pip_requirements`` of the model names. It repeats the few lines of arithmetic of the predictor on purpose; a test
holds the two to the same answers. It stays one file, longer than others: a second one beside it would be a module of
one name in every version, and a process that serves two versions would run the code of the first for both.
"""

from __future__ import annotations

import hashlib
import json
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from mlflow.exceptions import MlflowException
from mlflow.models import set_model
from mlflow.pyfunc import PythonModel

DUAL_ORDER = {"l1": np.inf, "l2": 2, "linf": 1}
Array = np.ndarray[Any, np.dtype[np.float64]]
TARGET_LOSSES = ("huber", "epsilon_insensitive", "pinball", "squared")


class Fourier:
    """Random Fourier features of scaled features, drawn from the document's seed."""

    def __init__(self, spec: dict[str, Any], n_features: int) -> None:
        """Draw the lift."""
        random = np.random.Generator(np.random.PCG64(spec["seed"]))
        self.keep = bool(spec["keep_linear"])
        self.inputs = n_features
        self.frequencies = random.standard_normal((spec["components"], n_features)) / spec["bandwidth"]
        self.phases = random.uniform(0.0, 2.0 * np.pi, spec["components"])
        digest = hashlib.sha256(f"fourier-lift/1 {spec['seed']} {spec['bandwidth']!r} {self.keep}".encode())
        for array in (self.frequencies, self.phases):
            digest.update(str(array.shape).encode() + np.ascontiguousarray(array, dtype="<f8").tobytes())
        self.fingerprint = digest.hexdigest()

    def apply(self, scaled: Array) -> Array:
        """Lifted features of scaled ones."""
        waves = 0.5 + 0.5 * np.cos((scaled - 0.5) @ self.frequencies.T + self.phases)
        return np.hstack([scaled, waves]) if self.keep else waves

    def steepness(self, slopes: Array, norm: str) -> Array:
        """Bound, anywhere, on the dual norm of the gradient of each lifted slope, along the last axis."""
        sizes, wide = np.abs(self.frequencies), float(self.keep)
        linear = np.abs(slopes[..., : self.inputs]) if self.keep else 0.0
        waves = np.abs(slopes[..., self.inputs :] if self.keep else slopes)
        factor = {
            "l1": wide + 0.5 * sizes.sum(axis=0).max(),
            "l2": np.sqrt(wide + 0.25 * np.linalg.norm(self.frequencies, 2) ** 2),
            "linf": max(wide, 0.5 * sizes.sum(axis=1).max()),
        }[norm]
        return lesser(linear + 0.5 * waves @ sizes, factor, slopes, norm)


class Spline:
    """Ramps of each scaled feature between equally spaced knots."""

    def __init__(self, spec: dict[str, Any], n_features: int) -> None:
        """Place the knots."""
        self.inputs, self.segments = n_features, spec["segments"]
        self.knots = np.linspace(0.0, 1.0, self.segments + 1)
        digest = hashlib.sha256(f"spline-lift/1 {n_features} {self.segments}".encode())
        digest.update(np.tile(self.knots, (n_features, 1)).astype("<f8").tobytes())
        self.fingerprint = digest.hexdigest()

    def apply(self, scaled: Array) -> Array:
        """Lifted features of scaled ones."""
        ramps = np.clip(scaled[:, :, None], self.knots[:-1], self.knots[1:]) - self.knots[:-1]
        return ramps.reshape(len(scaled), -1)

    def steepness(self, slopes: Array, norm: str) -> Array:
        """Bound, anywhere, on the dual norm of the gradient of each lifted slope, along the last axis."""
        lines = np.abs(slopes).reshape(*slopes.shape[:-1], self.inputs, self.segments)
        return lesser(lines.max(axis=-1), 1.0, slopes, norm)


class Products:
    """The scaled features, each as ramps where it has segments, and products of pairs of them."""

    def __init__(self, spec: dict[str, Any], n_features: int) -> None:
        """List the pairs."""
        chosen, least = sorted(spec["features"]), 0 if spec["squares"] else 1
        self.inputs, self.segments = n_features, spec.get("segments", 1)
        self.n_alone = n_features * self.segments
        self.ramps = Spline({"segments": self.segments}, n_features) if self.segments > 1 else None
        self.pairs = tuple((i, j) for a, i in enumerate(chosen) for j in chosen[a + least :])
        self.bounds = np.eye(n_features)[[i for i, _ in self.pairs]] + np.eye(n_features)[[j for _, j in self.pairs]]
        digest = hashlib.sha256(f"product-lift/1 {n_features} {self.pairs}".encode())
        digest.update(b"" if self.ramps is None else self.ramps.fingerprint.encode())
        self.fingerprint = digest.hexdigest()

    def apply(self, scaled: Array) -> Array:
        """Lifted features of scaled ones."""
        centred = np.clip(scaled, 0.0, 1.0) - 0.5
        products = centred[:, [i for i, _ in self.pairs]] * centred[:, [j for _, j in self.pairs]]
        return np.hstack([scaled if self.ramps is None else self.ramps.apply(scaled), 0.5 + 2.0 * products])

    def steepness(self, slopes: Array, norm: str) -> Array:
        """Bound, anywhere, on the dual norm of the gradient of each lifted slope, along the last axis."""
        factor = {
            "l1": 1.0 + self.bounds.sum(axis=0).max(),
            "l2": np.sqrt(1.0 + np.linalg.norm(self.bounds, 2) ** 2),
            "linf": max(1.0, self.bounds.sum(axis=1).max()),
        }[norm]
        alone, along = np.abs(slopes[..., : self.n_alone]), np.abs(slopes[..., self.n_alone :])
        steepest = alone.reshape(*slopes.shape[:-1], self.inputs, self.segments).max(axis=-1)
        return lesser(steepest + along @ self.bounds, factor, slopes, norm)


class Nystrom:
    """Whitened bumps around points, public or drawn from the document's seed."""

    def __init__(self, spec: dict[str, Any], n_features: int) -> None:
        """Place the points."""
        self.inputs, self.keep, self.bandwidth = n_features, bool(spec["keep_linear"]), spec["bandwidth"]
        random = np.random.Generator(np.random.PCG64(spec["seed"]))
        drawn = spec["components"] is not None
        self.points = random.uniform(size=(spec["components"], n_features)) if drawn else np.array(spec["points"])
        head = f"nystrom-lift/1 {self.bandwidth!r} {self.keep} {self.points.shape}".encode()
        self.fingerprint = hashlib.sha256(head + np.ascontiguousarray(self.points, dtype="<f8").tobytes()).hexdigest()
        values, vectors = np.linalg.eigh(self._kernel(self.points))
        self.whitening = (vectors / np.sqrt(np.maximum(values, 0.0) + 1e-6)) @ vectors.T

    def _kernel(self, scaled: Array) -> Array:
        squares = (scaled**2).sum(axis=1)[:, None] + (self.points**2).sum(axis=1) - 2.0 * scaled @ self.points.T
        return np.asarray(np.exp(-0.5 * np.maximum(squares, 0.0) / self.bandwidth**2))

    def apply(self, scaled: Array) -> Array:
        """Lifted features of scaled ones."""
        bumps = np.clip(0.5 + 0.5 * self._kernel(scaled) @ self.whitening, 0.0, 1.0)
        return np.hstack([scaled, bumps]) if self.keep else bumps

    def steepness(self, slopes: Array, norm: str) -> Array:
        """Bound, anywhere, on the dual norm of the gradient of each lifted slope, along the last axis."""
        linear = slopes[..., : self.inputs] if self.keep else np.zeros((*slopes.shape[:-1], self.inputs))
        along, stretch = slopes[..., self.inputs :] if self.keep else slopes, 0.5 * (1.0 + 1e-5)
        whole = stretch * np.linalg.norm(along, axis=-1)
        single = 0.5 * np.exp(-0.5) * np.abs(along @ self.whitening).sum(axis=-1)
        wide = np.sqrt(self.inputs) if norm == "linf" else 1.0
        apart = np.linalg.norm(linear, ord=DUAL_ORDER[norm], axis=-1)
        apart = apart + wide * np.minimum(whole, single) / self.bandwidth
        kept, bend = float(self.keep), stretch / self.bandwidth
        factor = {
            "l1": kept + bend * np.sqrt(len(self.points)), "l2": np.sqrt(kept + bend**2),
            "linf": max(kept, bend * np.sqrt(self.inputs)),
        }[norm]
        return np.asarray(np.minimum(apart, factor * np.linalg.norm(slopes, ord=DUAL_ORDER[norm], axis=-1)))


def lesser(by_feature: Array, factor: float, slopes: Array, norm: str) -> Array:
    """The lesser bound: by the partial derivatives, or by the lift's Lipschitz constant."""
    single = np.linalg.norm(by_feature, ord=DUAL_ORDER[norm], axis=-1)
    return np.asarray(np.minimum(single, factor * np.linalg.norm(slopes, ord=DUAL_ORDER[norm], axis=-1)))


LIFTS = {"fourier": Fourier, "spline": Spline, "products": Products, "nystrom": Nystrom}


def made_lift(spec: dict[str, Any] | None, n_features: int) -> Any:
    """The document's lift, None without one; raise where this numpy makes another than the one that trained."""
    if not spec:
        return None
    kind = spec.get("kind", "fourier")
    if kind not in LIFTS:
        raise MlflowException(f"this serving file knows no lift of kind {kind}")
    lift: Any = LIFTS[kind](spec, n_features)
    if spec["fingerprint"] not in (None, lift.fingerprint):
        raise MlflowException("the lift drawn here is not the one of the training: numpy has another version")
    return lift


class Network:
    """A layer of units between the scaled features and the classes, from the document's one row of parameters."""

    def __init__(self, parameters: Array, hidden: int, n_features: int, n_classes: int) -> None:
        """Take the parameters apart: the first layer and its biases, then the second and its own."""
        ends = np.cumsum([hidden * n_features, hidden, n_classes * hidden])
        inner, self.bias, outer, self.last = np.split(parameters, ends)
        self.inner, self.outer = inner.reshape(hidden, n_features), outer.reshape(n_classes, hidden)

    def scores(self, scaled: Array) -> Array:
        """Scores of the classes."""
        lit: Array = np.maximum(scaled @ self.inner.T + self.bias, 0.0)
        return np.asarray(lit @ self.outer.T + self.last)

    def steepness(self, norm: str) -> Array:
        """Bound on the dual norm of the gradient of each difference of two classes' scores, one by the other."""
        apart = self.outer[:, None, :] - self.outer[None, :, :]
        up, down = np.maximum(self.inner, 0.0), np.maximum(-self.inner, 0.0)
        for_it, against = np.maximum(apart, 0.0), np.maximum(-apart, 0.0)
        largest = np.maximum(for_it @ up + against @ down, for_it @ down + against @ up)
        found = np.linalg.norm(largest, ord=DUAL_ORDER[norm], axis=-1)
        whole = np.linalg.norm(apart, axis=-1) * np.linalg.norm(self.inner, 2)
        return np.asarray(np.minimum(found, whole) if norm == "l2" else found)


class ServedModel(PythonModel):  # type: ignore[misc]  # MLflow's types are skipped, its classes are Any to mypy
    """Diagnoses, or estimates, from rows of features, named and in the units of the model's feature contract."""

    def load_context(self, context: Any) -> None:
        """Read the model from its JSON document."""
        document = json.loads(Path(context.artifacts["model"]).read_text(encoding="utf-8"))
        self.features = document["asset_type"]["features"]
        self.low = np.array([feature["low"] for feature in self.features])
        self.high = np.array([feature["high"] for feature in self.features])
        self.is_log = np.array([feature.get("scale") == "log" for feature in self.features])
        heads = np.array(document["weights"], dtype=np.float64)
        self.lift = made_lift(document["spec"].get("lift"), len(self.features))
        loss = document["spec"].get("loss") or {"name": "hinge"}
        self.target = document["asset_type"].get("target") if loss["name"] in TARGET_LOSSES else None
        self.classes = document["asset_type"]["fault_classes"]
        self.network, norm = None, document["spec"]["transport_norm"]
        if self.target is not None:
            self.weights, self.interval = heads, document["error_interval"]
            return
        if document["spec"].get("network"):
            hidden = document["spec"]["network"]["hidden"]
            self.network = Network(heads[0], hidden, len(self.features), len(self.classes))
            self.norms = self.network.steepness(norm)
            return
        # Two classes have one plane, whose far side is the second class: give each class a plane of its own.
        self.weights = np.vstack([-heads, heads]) if len(heads) == 1 else heads
        apart = self.weights[:, None, :-1] - self.weights[None, :, :-1]
        if self.lift is None:
            self.norms = np.linalg.norm(apart, ord=DUAL_ORDER[norm], axis=-1)
        else:
            self.norms = self.lift.steepness(apart, norm)

    def predict(
        self, context: Any, model_input: pd.DataFrame, params: dict[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """One answer for each row.

        A diagnosis: fault class, severity, scores, robustness radius (None: nothing changes it). An estimate: value,
        unit, interval.
        """
        low = self._turned(self.low)
        scaled = (self._turned(self._values(model_input)) - low) / (self._turned(self.high) - low)
        seen = scaled if self.lift is None else self.lift.apply(scaled)
        if self.network is not None:
            return [self._diagnosis(row) for row in self.network.scores(scaled)]
        scores = seen @ self.weights[:, :-1].T + self.weights[:, -1]
        if self.target is not None:
            return [self._estimate(row) for row in scores[:, 0].tolist()]
        return [self._diagnosis(row) for row in scores]

    def _turned(self, values: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Values (..., P), by their logarithms where the contract scales so."""
        turned = values.copy()
        turned[..., self.is_log] = np.log(values[..., self.is_log])
        return turned

    def _estimate(self, scaled: float) -> dict[str, Any]:
        target: dict[str, Any] = self.target or {}
        value, ends = target["low"] + (target["high"] - target["low"]) * scaled, {}

        def cut(number: float) -> float:
            return float(min(max(number, target["low"]), target["high"]))

        if self.interval is not None:
            ends = {"low": cut(value - self.interval["below"]), "high": cut(value + self.interval["above"])}
            ends["confidence"] = self.interval["confidence"]
        return {"value": cut(value), "unit": target["unit"], "interval": ends}

    def _values(self, frame: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.float64]]:
        values = np.empty((len(frame), len(self.features)))
        for column, feature in enumerate(self.features):
            name, low, high = feature["name"], feature["low"], feature["high"]
            if name in frame.columns:
                given = self._numbers(frame[name], name, feature["unit"])
            else:
                given = np.full(len(frame), np.nan)
            if feature["required"] and np.isnan(given).any():
                raise MlflowException.invalid_parameter_value(
                    f"feature {name} is required: give a number in {feature['unit']}"
                )
            given[np.isnan(given)] = float(np.sqrt(low) * np.sqrt(high)) if self.is_log[column] else (low + high) / 2.0
            if not np.isfinite(given).all():
                raise MlflowException.invalid_parameter_value(f"feature {name} must be a finite number")
            if feature["out_of_range"] == "refuse" and ((given < low) | (given > high)).any():
                raise MlflowException.invalid_parameter_value(
                    f"feature {name} is outside its sensor range {low} to {high} {feature['unit']}"
                )
            values[:, column] = np.clip(given, low, high)
        return values

    @staticmethod
    def _numbers(column: pd.Series, name: str, unit: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Numbers of a column, NaN where pandas says that there is none, in whichever of its forms."""
        if column.dtype.kind not in "iuf":
            column = column.astype(object)
            for value in column[column.notna()]:
                if not isinstance(value, Number) or isinstance(value, bool | complex):
                    raise MlflowException.invalid_parameter_value(
                        f"feature {name} must be a number in {unit}, got {type(value).__name__}"
                    )
        try:
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan, copy=True))
        except OverflowError:
            raise MlflowException.invalid_parameter_value(f"feature {name} must be a finite number") from None

    def _diagnosis(self, scores: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, Any]:
        winner = int(np.argmax(scores))
        rivals = np.arange(len(scores)) != winner
        norms = self.norms[winner][rivals]
        margins = scores[winner] - scores[rivals]
        reach = np.divide(margins, norms, out=np.where(margins > 0, np.inf, 0.0), where=norms > 0)
        radius = float(reach.min())
        return {
            "fault_class": self.classes[winner]["name"],
            "severity": self.classes[winner]["severity"],
            "scores": {fault["name"]: float(score) for fault, score in zip(self.classes, scores, strict=True)},
            "robustness_radius": radius if np.isfinite(radius) else None,
        }


set_model(ServedModel())
