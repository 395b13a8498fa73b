"""The served form of a model version: ``model.json`` and numpy, nothing of Ballast's.

MLflow copies this file into the model ("models from code") and runs it in the serving process, so it may import only
what ``pip_requirements`` of the model names. It repeats the few lines of arithmetic of the predictor on purpose; a test
holds the two to the same answers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from mlflow.exceptions import MlflowException
from mlflow.models import set_model
from mlflow.pyfunc import PythonModel

DUAL_ORDER = {"l1": np.inf, "l2": 2, "linf": 1}


class ServedDiagnosis(PythonModel):  # type: ignore[misc]  # MLflow's types are skipped, its classes are Any to mypy
    """Diagnoses rows of features, named and in the units of the model's feature contract."""

    def load_context(self, context: Any) -> None:
        """Read the model from its JSON document."""
        document = json.loads(Path(context.artifacts["model"]).read_text(encoding="utf-8"))
        self.features = document["asset_type"]["features"]
        self.classes = document["asset_type"]["fault_classes"]
        self.low = np.array([feature["low"] for feature in self.features])
        self.high = np.array([feature["high"] for feature in self.features])
        heads = np.array(document["weights"], dtype=np.float64)
        # Two classes have one plane, whose far side is the second class: give each class a plane of its own.
        self.weights = np.vstack([-heads, heads]) if len(heads) == 1 else heads
        apart = self.weights[:, None, :-1] - self.weights[None, :, :-1]
        self.norms = np.linalg.norm(apart, ord=DUAL_ORDER[document["spec"]["transport_norm"]], axis=-1)

    def predict(
        self, context: Any, model_input: pd.DataFrame, params: dict[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """One diagnosis for each row: fault class, severity, scores, robustness radius (None: nothing changes it)."""
        scaled = (self._values(model_input) - self.low) / (self.high - self.low)
        scores = scaled @ self.weights[:, :-1].T + self.weights[:, -1]
        return [self._diagnosis(row) for row in scores]

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


set_model(ServedDiagnosis())
