"""The methods of Table 2 and the settings that each of them is tuned over."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from models.basics import FloatArray
from models.losses.classification import Logistic
from models.methods.local_sgd.objectives.base import Objective, Rows
from models.methods.local_sgd.objectives.linear import LinearObjective
from models.methods.local_sgd.objectives.network import NetworkObjective
from models.methods.local_sgd.objectives.softmax import SoftmaxObjective
from models.problem import RobustSpec, SiteProblem
from models.simulation.federation import train
from models.simulation.local_training import train_local
from models.site_ambiguity.ball import MixtureBall

STEPS = (0.1, 1.0)
IMAGE_STEPS = (0.01, 0.03)
"""Of the linear models on pixels, whose clients have a class each: at .1 and above a model tells one class of all.

The network's is .01, the step that the paper states for its graphs.
"""
MIXTURE_STEP = 0.01
BETAS = (0.4, 4.0)
RADII = (0.002, 0.02)
BATCH, LOCAL_STEPS = 0.1, 10.0
BUNDLE, BUNDLE_ROUNDS = "DRFL (level bundle)", 60

SETTINGS: Mapping[str, tuple[dict[str, float], ...]] = {
    "FedAvg": tuple({"step_size": step, "batch": BATCH} for step in STEPS),
    "DRFA": tuple(
        {"step_size": step, "batch": BATCH, "local_steps": LOCAL_STEPS, "mixture_step": MIXTURE_STEP} for step in STEPS
    ),
    "DRFLM": tuple(
        {
            "step_size": step, "batch": BATCH, "local_steps": LOCAL_STEPS, "mixture_step": MIXTURE_STEP,
            "mixup_alpha": beta, "mixup_beta": beta,
        }
        for step in STEPS for beta in BETAS
    ),
    BUNDLE: tuple({"radius": radius} for radius in RADII),
}
"""Ten local steps on batches of a tenth of the rows for all: FedAvg takes them as one epoch."""

NAMES = {"FedAvg": "fedavg", "DRFA": "drfa", "DRFLM": "drflm"}


NETWORK_SETTINGS: Mapping[str, tuple[dict[str, float], ...]] = {
    "FedAvg": ({"step_size": 0.5, "batch": BATCH},),
    "DRFA": ({"step_size": 0.5, "batch": BATCH, "local_steps": LOCAL_STEPS, "mixture_step": MIXTURE_STEP},),
    "DRFLM": (
        {
            "step_size": 0.5, "batch": BATCH, "local_steps": LOCAL_STEPS, "mixture_step": MIXTURE_STEP,
            "mixup_alpha": 1.0, "mixup_beta": 1.0,
        },
    ),
}
"""One setting for all, as the paper has one learning rate for all: the network is trained until it fits its rows."""


def settings_of(model: str, *, images: bool = False) -> Mapping[str, tuple[dict[str, float], ...]]:
    """Columns of a model, ``linear`` or ``network``, with their settings; ``images``: with the steps for pixels."""
    found = SETTINGS if model == "linear" else NETWORK_SETTINGS
    if not images:
        return found
    steps = dict(zip(STEPS, IMAGE_STEPS, strict=True)) if model == "linear" else {0.5: IMAGE_STEPS[0]}
    return {
        column: tuple({**one, "step_size": steps[one["step_size"]]} for one in settings)
        for column, settings in found.items() if column != BUNDLE
    }


def objective_for(model: str, n_classes: int) -> Objective:
    """Logistic regression, of two classes or of more; or a network with 50 hidden units, without dropout."""
    if model == "network":
        return NetworkObjective(n_classes, hidden=50, dropout=0.0)
    return LinearObjective(Logistic()) if n_classes == 2 else SoftmaxObjective(n_classes)


def fit(
    column: str,
    setting: Mapping[str, float],
    rows: Mapping[str, Rows],
    *,
    model: str = "linear",
    n_classes: int,
    rounds: int,
    seed: int,
) -> FloatArray:
    """Weights (D,) of the model under the logistic loss; the clients weigh by their rows (DRFLM eq. 1).

    The level bundle guards against the worst client too (every mixture of the two), and each client's data against a
    Wasserstein ball (l2, label flip cost 1); it stops at a certified gap of 1e-2 or after 60 rounds.
    """
    if column not in NAMES:
        spec = RobustSpec(setting["radius"], 1.0, "l2", loss=Logistic())
        problems = {name: SiteProblem(features, labels, spec) for name, (features, labels) in rows.items()}
        return train(problems, mixture=MixtureBall("l1", 2.0), gap=1e-2, max_rounds=BUNDLE_ROUNDS).weights
    total = sum(labels.shape[0] for _, labels in rows.values())
    weights = {name: labels.shape[0] / total for name, (_, labels) in rows.items()}
    weights[min(weights)] += 1.0 - float(np.sum(list(weights.values())))
    numbers = {**setting, "seed": float(seed)} | ({"epochs": 1.0} if column == "FedAvg" else {})
    indexed = {name: (features, _indices(labels, model, n_classes)) for name, (features, labels) in rows.items()}
    return train_local(
        objective_for(model, n_classes), indexed, method=NAMES[column], parameters=numbers, rounds=rounds,
        weights=weights, seed=seed,
    ).weights


def correct(weights: FloatArray, rows: Rows, n_classes: int, model: str = "linear") -> FloatArray:
    """Which rows the model classifies correctly: 1 or 0 each, (N,)."""
    features, labels = rows
    if model == "network":
        scores = NetworkObjective(n_classes, hidden=50, dropout=0.0).scores(weights, features)
        return (scores.argmax(axis=1) == _indices(labels, model, n_classes)).astype(np.float64)
    if n_classes == 2:
        predicted = np.where(features @ weights[:-1] + weights[-1] < 0, -1.0, 1.0)
    else:
        predicted = SoftmaxObjective(n_classes).scores(weights, features).argmax(axis=1).astype(np.float64)
    return (predicted == labels).astype(np.float64)


def _indices(labels: FloatArray, model: str, n_classes: int) -> FloatArray:
    """Labels as the model's objective has them: class indices, but -1 and +1 for the linear one of two classes."""
    return (labels + 1) / 2 if model == "network" and n_classes == 2 else labels
