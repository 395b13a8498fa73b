"""The served form of a model version: ``model.json`` and numpy, nothing of Ballast's.

MLflow copies this file into the model ("models from code") and runs it in the serving process, so it may import only
what ``pip_requirements`` of the model names. It repeats the few lines of arithmetic of the predictor on purpose; a test
holds the two to the same answers.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from mlflow.exceptions import MlflowException
from mlflow.models import set_model
from mlflow.pyfunc import PythonModel

DUAL_ORDER = {"l1": np.inf, "l2": 2, "linf": 1}
TARGET_LOSSES = ("huber", "epsilon_insensitive", "pinball", "squared")


class Lift:
    """Random Fourier features of scaled features, drawn from the document's seed and held to its fingerprint."""

    def __init__(self, spec: dict[str, Any], n_features: int) -> None:
        """Draw the lift; raise where this numpy draws other numbers than the one that trained."""
        random = np.random.Generator(np.random.PCG64(spec["seed"]))
        self.keep = bool(spec["keep_linear"])
        self.inputs = n_features
        self.frequencies = random.standard_normal((spec["components"], n_features)) / spec["bandwidth"]
        self.phases = random.uniform(0.0, 2.0 * np.pi, spec["components"])
        digest = hashlib.sha256(f"fourier-lift/1 {spec['seed']} {spec['bandwidth']!r} {self.keep}".encode())
        for array in (self.frequencies, self.phases):
            digest.update(str(array.shape).encode() + np.ascontiguousarray(array, dtype="<f8").tobytes())
        if spec["fingerprint"] not in (None, digest.hexdigest()):
            raise MlflowException("the lift drawn here is not the one of the training: numpy has another version")

    def apply(self, scaled: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Lifted features of scaled ones."""
        waves = 0.5 + 0.5 * np.cos((scaled - 0.5) @ self.frequencies.T + self.phases)
        return np.hstack([scaled, waves]) if self.keep else waves

    def steepness(self, slopes: np.ndarray[Any, Any], norm: str) -> np.ndarray[Any, Any]:
        """Bound, anywhere, on the dual norm of the gradient of each lifted slope, along the last axis."""
        sizes, wide = np.abs(self.frequencies), float(self.keep)
        linear = np.abs(slopes[..., : self.inputs]) if self.keep else 0.0
        waves = np.abs(slopes[..., self.inputs :] if self.keep else slopes)
        by_feature = np.linalg.norm(linear + 0.5 * waves @ sizes, ord=DUAL_ORDER[norm], axis=-1)
        factor = {
            "l1": wide + 0.5 * sizes.sum(axis=0).max(),
            "l2": np.sqrt(wide + 0.25 * np.linalg.norm(self.frequencies, 2) ** 2),
            "linf": max(wide, 0.5 * sizes.sum(axis=1).max()),
        }[norm]
        return np.asarray(np.minimum(by_feature, factor * np.linalg.norm(slopes, ord=DUAL_ORDER[norm], axis=-1)))


class ServedModel(PythonModel):  # type: ignore[misc]  # MLflow's types are skipped, its classes are Any to mypy
    """Diagnoses, or estimates, from rows of features, named and in the units of the model's feature contract."""

    def load_context(self, context: Any) -> None:
        """Read the model from its JSON document."""
        document = json.loads(Path(context.artifacts["model"]).read_text(encoding="utf-8"))
        self.features = document["asset_type"]["features"]
        self.low = np.array([feature["low"] for feature in self.features])
        self.high = np.array([feature["high"] for feature in self.features])
        heads = np.array(document["weights"], dtype=np.float64)
        self.lift = Lift(document["spec"]["lift"], len(self.features)) if document["spec"].get("lift") else None
        loss = document["spec"].get("loss") or {"name": "hinge"}
        self.target = document["asset_type"].get("target") if loss["name"] in TARGET_LOSSES else None
        self.classes = document["asset_type"]["fault_classes"]
        if self.target is not None:
            self.weights, self.interval = heads, document["error_interval"]
            return
        # Two classes have one plane, whose far side is the second class: give each class a plane of its own.
        self.weights = np.vstack([-heads, heads]) if len(heads) == 1 else heads
        apart = self.weights[:, None, :-1] - self.weights[None, :, :-1]
        norm = document["spec"]["transport_norm"]
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
        scaled = (self._values(model_input) - self.low) / (self.high - self.low)
        seen = scaled if self.lift is None else self.lift.apply(scaled)
        scores = seen @ self.weights[:, :-1].T + self.weights[:, -1]
        if self.target is not None:
            return [self._estimate(row) for row in scores[:, 0].tolist()]
        return [self._diagnosis(row) for row in scores]

    def _estimate(self, scaled: float) -> dict[str, Any]:
        target: dict[str, Any] = self.target or {}
        value, ends = target["low"] + (target["high"] - target["low"]) * scaled, {}
        if self.interval is not None:
            ends = {"low": value - self.interval["below"], "high": value + self.interval["above"]}
            ends["confidence"] = self.interval["confidence"]
        return {"value": value, "unit": target["unit"], "interval": ends}

    def _values(self, frame: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.float64]]:
        values = np.empty((len(frame), len(self.features)))
        for column, feature in enumerate(self.features):
            name, low, high = feature["name"], feature["low"], feature["high"]
            if name in frame.columns:
                given = frame[name].to_numpy(dtype=np.float64, copy=True)
            else:
                given = np.full(len(frame), np.nan)
            if feature["required"] and np.isnan(given).any():
                raise MlflowException.invalid_parameter_value(
                    f"feature {name} is required: give a number in {feature['unit']}"
                )
            given[np.isnan(given)] = (low + high) / 2.0
            if not np.isfinite(given).all():
                raise MlflowException.invalid_parameter_value(f"feature {name} must be a finite number")
            if feature["out_of_range"] == "refuse" and ((given < low) | (given > high)).any():
                raise MlflowException.invalid_parameter_value(
                    f"feature {name} is outside its sensor range {low} to {high} {feature['unit']}"
                )
            values[:, column] = np.clip(given, low, high)
        return values

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
