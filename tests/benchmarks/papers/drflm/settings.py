"""The methods of Table 2 and the settings that each of them is tuned over."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from models.federation import train
from models.local_training import train_local
from models.losses.logistic import Logistic
from models.mixture import MixtureBall
from models.objectives.base import Objective
from models.objectives.linear import LinearObjective
from models.objectives.softmax import SoftmaxObjective
from models.problem import FloatArray, RobustSpec, SiteProblem
from tests.benchmarks.papers.drflm.clients import Rows

STEPS = (0.1, 1.0)
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
}  # fmt: skip
"""Ten local steps on batches of a tenth of the rows for all: FedAvg takes them as one epoch."""

NAMES = {"FedAvg": "fedavg", "DRFA": "drfa", "DRFLM": "drflm"}


def objective_for(n_classes: int) -> Objective:
    """Logistic regression, of two classes or of more."""
    return LinearObjective(Logistic()) if n_classes == 2 else SoftmaxObjective(n_classes)


def fit(
    column: str, setting: Mapping[str, float], rows: Mapping[str, Rows], *, n_classes: int, rounds: int, seed: int
) -> FloatArray:
    """Weights (D,) of the linear model under the logistic loss; the clients weigh by their rows (DRFLM eq. 1).

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
    return train_local(
        objective_for(n_classes), rows, method=NAMES[column], parameters=numbers, rounds=rounds, weights=weights
    ).weights


def correct(weights: FloatArray, rows: Rows, n_classes: int) -> FloatArray:
    """Which rows the model classifies correctly: 1 or 0 each, (N,)."""
    features, labels = rows
    if n_classes == 2:
        predicted = np.where(features @ weights[:-1] + weights[-1] < 0, -1.0, 1.0)
    else:
        predicted = SoftmaxObjective(n_classes).scores(weights, features).argmax(axis=1).astype(np.float64)
    return (predicted == labels).astype(np.float64)
