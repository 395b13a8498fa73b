"""Where a plant's own steps end is held to what was asked: what no rows lead to is left out, nobody honest is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.methods.catalogue import METHODS
from services.contracts.problems.lift import draw_lift, lift_check
from services.contracts.wire.messages import Task

LIAR = "plant-4"
STEPPING = [
    name for name, each in METHODS.items() if "local_point" in each.server.answer_shapes(2, 0, each.parameters)
]
LIFTS = {
    "none": None, "fourier": {"kind": "fourier", "components": 12, "bandwidth": 0.3},
    "spline": {"kind": "spline", "segments": 4}, "products": {"kind": "products", "features": [0, 1], "squares": True},
    "nystrom": {"kind": "nystrom", "components": 8, "bandwidth": 0.3},
}


def problem(method: str, **changes: Any) -> dict[str, Any]:
    loss = "logistic" if METHODS[method].needs_smooth_loss else "hinge"
    return {"radius": {"rule": "fixed", "value": 0.02}, "loss": {"name": loss}} | changes


def with_added(name: str, by: float) -> Any:
    return lambda task, arrays: dict(arrays) | (
        {name: arrays[name] + by} if task.kind == "round" and name in arrays else {}
    )


def lifting(task: Task, arrays: Any) -> Any:
    """A plant joins with the check of the lift that it draws."""
    check = {"lift_check": np.array(lift_check(draw_lift(task.spec.lift, 2)))}
    return arrays | check if task.kind == "join" else arrays


@pytest.mark.parametrize("lift", LIFTS)
@pytest.mark.parametrize("method", STEPPING)
def test_no_honest_plant_is_left_out(works: Any, method: str, lift: str) -> None:
    spec = problem(method) | ({} if LIFTS[lift] is None else {"lift": LIFTS[lift]})
    for plant in works.plants.values():
        plant.falsify = lifting
    run = works.run(method=method, spec=spec, max_rounds=3)
    works.train(run)
    assert works.store.get_run(run.run_id).excluded == ()
    assert all(each.status == "accepted" for record in works.store.records for each in record.answers)


@pytest.mark.parametrize("method", [name for name in STEPPING if name not in ("fedsgd", "safl")])
def test_a_point_that_no_rows_lead_to_leaves_its_plant_out(works: Any, method: str) -> None:
    works.plants[LIAR].falsify = with_added("local_point", 1e6)
    run = works.run(method=method, spec=problem(method), max_rounds=3)
    trained = works.train(run)
    (left_out,) = works.store.get_run(run.run_id).excluded
    assert (left_out.site_id, left_out.code, left_out.round) == (LIAR, "implausible", 1)
    assert "its local point is 1e+06 away, and no rows lead farther than" in left_out.reason.replace("1e+06.", "1e+06")
    assert np.abs(trained.weights).max() < 1e3


@pytest.mark.parametrize("by", [(0.0, -1e6, 0.0), (0.0, 0.0, 1e6)])
def test_one_weight_that_no_rows_lead_to_is_enough(works: Any, by: tuple[float, ...]) -> None:
    works.plants[LIAR].falsify = with_added("local_point", np.array(by))
    run = works.run(method="fedavg", spec=problem("fedavg"), max_rounds=2)
    works.train(run)
    (left_out,) = works.store.get_run(run.run_id).excluded
    assert (left_out.site_id, left_out.code, left_out.round) == (LIAR, "implausible", 1)


@pytest.mark.parametrize(("method", "name", "said"), [
    ("drfa", "snapshot", "its snapshot is 1e+06 away"),
    ("drfl-admm", "local_risk", "its local risk is 1e+06, and no rows have one above"),
    ("drflm", "mixed_risk", "its mixed risk is 1e+06, and no rows have one above"),
])
def test_so_does_another_number_that_no_rows_give(works: Any, method: str, name: str, said: str) -> None:
    works.plants[LIAR].falsify = with_added(name, 1e6)
    run = works.run(method=method, spec=problem(method), max_rounds=3)
    works.train(run)
    (left_out,) = works.store.get_run(run.run_id).excluded
    assert left_out.site_id == LIAR and said in left_out.reason.replace("e+06.", "e+06")
