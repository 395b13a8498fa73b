"""What one row may add at most: a row that moves anywhere in the sensor ranges never changes its loss by more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.basics import ProblemError
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.machines.target import Target
from services.contracts.problems.all_scores import joint_loss, objective_of
from services.contracts.problems.training_spec import TrainingSpec
from services.site_agent.answers.local_scores import held_out_loss, regression_sums
from services.site_agent.answers.local_solve import head_risks, lifted, site_problems
from services.site_agent.limits.row_reach import row_reach

N_FEATURES = 2
RIG = AssetType(
    name="rig", features=tuple(Feature(name=f"x{k}", unit="1", low=0, high=1) for k in range(N_FEATURES)),
    fault_classes=tuple(FaultClass(name=f"c{k}", severity=k) for k in range(3)),
    target=Target(name="life", unit="1", low=0, high=1),
)
SPLINE = {"kind": "spline", "segments": 16}
PROBLEMS: dict[str, dict[str, Any]] = {
    "hinge": {}, "logistic": {"loss": "logistic"}, "narrow segments": {"lift": SPLINE},
    "kernels": {"lift": {"kind": "fourier", "components": 8, "bandwidth": 0.05}},
    "bumps": {"lift": {"kind": "nystrom", "points": ((0.2, 0.2), (0.7, 0.5)), "bandwidth": 0.03}},
    "products": {"lift": {"kind": "products", "features": (0, 1), "squares": True}},
    "all classes": {"multi_class": "crammer_singer"}, "softmax": {"loss": "cross_entropy"},
    "network": {"loss": "cross_entropy", "network": {"hidden": 5}}, "huber": {"loss": "huber"},
    "pinball": {"loss": {"name": "pinball", "quantile": 0.9}}, "squared": {"loss": "squared"},
    "target by segments": {"loss": "huber", "lift": SPLINE},
}


def spec_of(name: str) -> TrainingSpec:
    return TrainingSpec.model_validate({"radius": {"rule": "fixed", "value": 0.0}, **PROBLEMS[name]})


def drawn(name: str, random: np.random.Generator) -> tuple[np.ndarray, Any]:
    spec = spec_of(name)
    objective, size = objective_of(spec, RIG), lifted(spec, np.zeros((1, N_FEATURES))).shape[1]
    if spec.network is not None:
        return random.normal(scale=5.0, size=(1, objective.size(size))), objective
    return random.normal(scale=5.0, size=(1 if spec.loss.task == "regression" else 3, size + 1)), objective


@pytest.mark.parametrize("name", PROBLEMS)
def test_no_step_of_a_row_moves_its_loss_further_than_its_share_of_the_reach(name: str) -> None:
    random, spec = np.random.default_rng(5), spec_of(name)
    loss, classes = spec.loss.loss, random.integers(3, size=400)
    for _ in range(5):
        weights, objective = drawn(name, random)
        reach = row_reach(weights, spec, RIG, objective)
        rows = random.uniform(size=(400, N_FEATURES))
        length = 10.0 ** random.uniform(-4, 0, size=400)
        near = np.clip(rows + length[:, None] * random.uniform(-1, 1, size=rows.shape), 0.0, 1.0)
        targets = random.uniform(size=400)
        others = np.clip(targets + length * random.uniform(-1, 1, size=400), 0.0, 1.0)
        moved = np.abs(near - rows).max(axis=1)
        ends = []
        for part, goal in ((rows, targets), (near, others)):
            outcomes = goal if loss.task == "regression" else classes
            ends.append(np.array([
                float(held_out_loss(
                    weights, lifted(spec, part[[k]]), outcomes[[k]], joint_loss(spec, RIG) or loss, 3, objective
                )) for k in range(400)
            ]))
        if loss.task == "regression":
            moved = np.maximum(moved, np.abs(others - targets))
        assert (np.abs(ends[1] - ends[0]) <= reach.loss * moved * (1 + 1e-9) + 1e-12).all()
        if loss.task == "regression":
            interval = np.array([-1.0, 1.0])
            for k in range(50):
                one, other = (
                    regression_sums(weights, lifted(spec, part[[k]]), goal[[k]], interval, spec.loss.quantile or 0.5)
                    for part, goal in ((rows, targets), (near, others))
                )
                for error, most in reach.errors.items():
                    assert abs(one[error] - other[error]) <= most * moved[k] * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("name", ["hinge", "logistic", "narrow segments", "all classes", "huber"])
@pytest.mark.parametrize("radius", [0.01, 0.2])
def test_nor_what_it_adds_to_a_worst_case_risk(name: str, radius: float) -> None:
    random, spec = np.random.default_rng(6), spec_of(name)
    spec = spec.model_copy(update={"radius": spec.radius.model_copy(update={"value": radius})})
    for _ in range(5):
        weights, _ = drawn(name, random)
        reach = row_reach(weights, spec, RIG)
        rows = random.uniform(size=(8, N_FEATURES))
        outcomes = random.uniform(size=8) if spec.loss.task == "regression" else np.arange(8) % 3
        near = rows.copy()
        near[0] = random.uniform(size=N_FEATURES)
        before, after = (
            head_risks(weights, site_problems(spec, lifted(spec, part), outcomes, RIG)) for part in (rows, near)
        )
        assert (np.abs(after - before) <= reach.risk / 8 * np.abs(near - rows).max() + 1e-6).all()


def test_a_steep_place_counts_whatever_its_width() -> None:
    flat, steep = np.zeros((1, 33)), np.zeros((1, 33))
    flat[0, :32], steep[0, 3] = 0.25, 4.0
    spec = spec_of("narrow segments")
    assert row_reach(flat, spec, RIG).loss == pytest.approx(0.5), "a plane, in segments"
    assert row_reach(steep, spec, RIG).loss == pytest.approx(4.0), "on a sixteenth of the range it rises by a quarter"
    assert row_reach(np.zeros((1, 33)), spec, RIG).loss == 0.0, "zero weights tell of no row"


def test_a_targets_own_move_counts_where_no_reading_moves_anything() -> None:
    """A plane of zeros: a target that goes from one end of its range to the other adds a whole square."""
    reach = row_reach(np.zeros((1, N_FEATURES + 1)), spec_of("squared"), RIG)
    ends = [
        regression_sums(np.zeros((1, N_FEATURES + 1)), np.zeros((1, N_FEATURES)), np.array([end]), np.zeros(2), 0.5)
        for end in (0.0, 1.0)
    ]
    for name, most in reach.errors.items():
        assert abs(float(ends[1][name] - ends[0][name])) <= most, name
    assert reach.loss >= 1.0


def test_weights_without_an_end_are_refused() -> None:
    with pytest.raises(ProblemError, match="no number"):
        row_reach(np.full((1, 3), 1e308), spec_of("squared"), RIG)
