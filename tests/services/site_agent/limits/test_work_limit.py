"""A task that would keep the plant at work for long, or whose answer could not leave, is refused uncomputed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from models.methods.local_sgd.site import LocalStepsSite
from services.contracts.machines.asset_type import AssetType
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.problems.tuning_task import TuningTask
from services.contracts.wire.messages import SiteRefusal, SiteUpdate, Task
from services.site_agent.limits.work import answer_numbers, operations
from services.site_agent.rules.policy import REASONS, SitePolicy

Make = Callable[..., Any]
LARGE = TrainingSpec.model_validate({
    "loss": "cross_entropy", "network": {"hidden": 1024, "dropout": 0.5}, "radius": {"rule": "fixed", "value": 0.0},
})
FIXED = TrainingSpec.model_validate({"radius": {"rule": "fixed", "value": 1e-3}})
PLENTY = {"local_steps": 1e4, "batch": 1.0}


@pytest.fixture
def rules(policy: SitePolicy) -> SitePolicy:
    return policy.model_copy(update={
        "methods": ("drfa", "fedavg", "level-bundle"), "messages": ("join", "round", "tune", "evaluate"),
    })


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was begun: nothing of a refused task may be."""
    begun: list[str] = []
    for name in ("site_problems", "solve_round", "tuning_answer", "lifted"):
        place = f"services.site_agent.door.row_answers.{name}"
        monkeypatch.setattr(place, lambda *_, name=name, **__: begun.append(name))
    return begun


def message(size: int, heads: int = 1) -> dict[str, np.ndarray]:
    point = np.zeros((heads, size))
    one = dict.fromkeys(("step_size", "draw", "snapshot_step"), np.full(heads, 1e-3))
    return {"point": point, "correction": point, **one}


def tuned(lifts: list[dict[str, Any]], parts: int, **more: Any) -> TuningTask:
    part = {"radius": 1.0, "label_flip_cost": 1.0, "fold": 0, **more}
    return TuningTask.model_validate({
        "folds": 3, "seed": 1, "lifts": lifts, "scored": False,
        "parts": [{**part, "lift": number % len(lifts)} for number in range(parts)],
    })


def refused(site: Any, kind: str, **asked: Any) -> str:
    answer = site.ask(kind, reveal="each site", **asked)
    assert isinstance(answer, SiteRefusal), answer
    assert answer.reason == REASONS[answer.code] and "\n" not in answer.reason
    return answer.code


def test_local_steps_of_a_large_network_are_refused(make_site: Make, rules: SitePolicy, busy: list[str]) -> None:
    """Each number within its own limit: a plant worked 30 to 109 s on one accepted task."""
    asked = {"spec": LARGE, "method": "drfa", "arrays": message(1024 * 4 + 2 * 1025), "parameters": PLENTY}
    assert refused(make_site(policy=rules), "round", **asked) == "work_limit"
    fourier = {"kind": "fourier", "components": 4096, "bandwidth": 0.1, "keep_linear": False}
    spec = TrainingSpec.model_validate({**FIXED.model_dump(), "loss": "logistic", "lift": fourier})
    asked = {"spec": spec, "method": "drfa", "arrays": message(4097), "parameters": PLENTY}
    assert refused(make_site(policy=rules, folder="other"), "round", **asked) == "work_limit"
    assert not busy


def test_a_tuning_of_many_large_lifts_is_refused(make_site: Make, rules: SitePolicy, busy: list[str]) -> None:
    """Fifty kernels at 1024 points each took 190 s."""
    kernel = {"kind": "nystrom", "components": 1024, "bandwidth": 0.3, "keep_linear": False}
    lifts = [{**kernel, "seed": number} for number in range(50)]
    points = {f"point_{number}": np.zeros((1, 1025)) for number in range(50)}
    site = make_site(policy=rules)
    assert refused(site, "tune", spec=FIXED, tuning=tuned(lifts, 50), arrays=points) == "work_limit"
    assert not busy


def test_an_answer_that_could_not_leave_is_not_computed(make_site: Make, rules: SitePolicy, busy: list[str]) -> None:
    """A thousand steps of splines took 26 s, and then the message was too large."""
    splines = [{"kind": "spline", "segments": 64}]
    asked = {"spec": FIXED, "tuning": tuned(splines, 1000, penalty=1e-6)}
    assert refused(make_site(policy=rules), "tune", **asked) == "message_too_large"
    small = make_site(policy=rules.model_copy(update={"max_message_bytes": 100_000}), folder="small")
    network = LARGE.model_copy(update={"network": LARGE.network.model_copy(update={"hidden": 800})})
    arrays = {"point": np.zeros((1, 1)), "correction": np.zeros((1, 1))}
    assert refused(small, "round", spec=network, method="fedavg", arrays=arrays) == "message_too_large"
    assert not busy


def test_the_policy_says_how_much(make_site: Make, rules: SitePolicy) -> None:
    asked = {"spec": FIXED, "method": "drfa", "arrays": message(4), "parameters": {"local_steps": 50.0, "batch": 1.0}}
    assert isinstance(make_site(policy=rules).ask("round", reveal="each site", **asked), SiteUpdate)
    strict = make_site(policy=rules.model_copy(update={"max_operations": 1e5}), folder="strict")
    assert refused(strict, "round", **asked) == "work_limit"


def test_refusals_of_work_are_none_of_the_rows(make_site: Make, rules: SitePolicy) -> None:
    """They go by the task and the number of rows, so a run goes on after any number of them."""
    site = make_site(policy=rules)
    asked = {"spec": LARGE, "method": "drfa", "arrays": message(1024 * 4 + 2 * 1025), "parameters": PLENTY}
    assert {refused(site, "round", **asked) for _ in range(4)} == {"work_limit"}
    assert isinstance(site.ask("join", reveal="each site", spec=FIXED, method="drfa"), SiteUpdate)


@pytest.mark.parametrize("parameters", [
    {"local_steps": 7.0, "batch": 0.3}, {"local_steps": 0.0, "epochs": 3.0, "batch": 0.05},
    {"epochs": 2.0, "batch": 1.0},
])
def test_steps_and_rows_of_a_batch_are_those_that_are_taken(parameters: dict[str, float]) -> None:
    rows, half = np.zeros((130, 2)), LocalStepsSite()
    given = {**parameters, "least_rows": 20.0}
    problem = type("Problem", (), {"features": rows})()
    steps, batch = half.steps(130, given)
    taken = [rows[chosen].shape[0] for chosen in half._batches(problem, given, np.random.default_rng(0))]
    assert len(taken) == steps and taken[0] == batch
    assert LocalStepsSite(one_step=True).steps(130, given)[0] == 1


@pytest.mark.parametrize(("method", "spec"), [
    ("fedavg", LARGE.model_copy(update={"network": LARGE.network.model_copy(update={"hidden": 3})})),
    ("drfa", FIXED), ("level-bundle", FIXED),
    ("level-bundle", FIXED.model_copy(update={"fit_intercept": False, "multi_class": "crammer_singer"})),
])
def test_the_size_of_an_answer_is_known_before_it(
    make_site: Make, rules: SitePolicy, three_classes: Any, make_table: Any, method: str, spec: TrainingSpec
) -> None:
    joint = spec.multi_class == "crammer_singer"
    changes = {"asset_type": three_classes, "rows": make_table(90, ("healthy", "leak", "worn"))} if joint else {}
    site = make_site(policy=rules, **changes)
    size = {"fedavg": 20, "drfa": 4}.get(method, 6 if joint else 4)
    arrays = message(size) if method != "level-bundle" else {
        "point": np.zeros((1, size)), "centre": np.zeros((1, size)), "penalty": np.ones(1),
    }
    asked = {"spec": spec, "method": method, "arrays": arrays, "reveal": "each site"}
    answer = site.ask("round", **asked)
    assert isinstance(answer, SiteUpdate), answer
    assert answer_numbers(site.task("round", **asked), site.asset_type) == sum(
        array.size for array in answer.arrays.values()
    )


def test_an_honest_task_takes_a_fiftieth_of_what_is_allowed(make_site: Make) -> None:
    """A thousand rows a plant: five epochs of a network, and forty cuts of splines over folds."""
    asset_type, most = make_site().asset_type, SitePolicy().max_operations

    def counted(**asked: Any) -> float:
        known = {"site_id": "plant-1", "run_id": "a" * 32, "round": 1, "asset_type": "pump", "contract": "0" * 64}
        return operations(Task(**(known | asked)), 1000, asset_type, 20)

    network = LARGE.model_copy(update={"network": LARGE.network.model_copy(update={"hidden": 32})})
    assert counted(kind="round", method="fedavg", spec=network, arrays=message(10)) < most / 50
    splines = tuned([{"kind": "spline", "segments": 6}], 40)
    assert counted(kind="tune", method="level-bundle", spec=FIXED, tuning=splines) < most / 50
    assert counted(kind="round", method="level-bundle", spec=FIXED, arrays=message(4)) < most / 1000


def test_what_is_asked_at_many_points_takes_as_often_as_much(asset_type: AssetType) -> None:
    def taken(kind: Any, **asked: Any) -> float:
        known: dict[str, Any] = {
            "kind": kind, "site_id": "p", "run_id": "a" * 32, "round": 1, "asset_type": "pump", "contract": "0" * 64,
            "spec": FIXED,
        }
        return operations(Task(**(known | asked)), 1000, asset_type, 20)

    def of_points(questions: int) -> float:
        return taken("round", method="cohort-bundle", arrays={"points": np.zeros((1, questions, 4))})

    def of_coupling(points: int) -> float:
        return taken("tune", method="level-bundle", tuning={"points": points})

    assert of_points(8) - of_points(4) == pytest.approx(2 * (of_points(4) - of_points(2)))
    assert of_points(4) > of_points(2)
    assert of_coupling(6) == pytest.approx(6 * of_coupling(1)) and of_coupling(1) > 0


def task_of(kind: Any, **asked: Any) -> Task:
    known: dict[str, Any] = {
        "kind": kind, "site_id": "p", "run_id": "a" * 32, "round": 1, "asset_type": "pump", "contract": "0" * 64,
        "method": "level-bundle", "spec": FIXED,
    }
    return Task(**(known | asked))


def test_a_step_of_a_network_is_counted_by_its_weights_and_its_units_by_one_another(asset_type: AssetType) -> None:
    def taken(hidden: int, least_rows: int = 20, batch: float = 1.0) -> float:
        network = LARGE.model_copy(update={"network": LARGE.network.model_copy(update={"hidden": hidden})})
        parameters = {"local_steps": 10.0, "batch": batch}
        asked = task_of("round", method="drfa", spec=network, arrays=message(1), parameters=parameters)
        return operations(asked, 1000, asset_type, least_rows)

    for hidden in (64, 256):
        weights = 4 * hidden + 2 * (hidden + 1)  # three features, two classes
        assert taken(hidden) == 1000 * weights + 10 * 3 * (1000 * (weights + hidden**2 // 8) + 1000)
    assert taken(64, least_rows=500, batch=0.01) > 3 * taken(64, batch=0.01), "a batch has as many rows as it must"


@pytest.mark.parametrize("at_points", [True, False])
def test_a_kernel_is_counted_by_the_matrix_of_its_points(asset_type: AssetType, at_points: bool) -> None:
    points = {"points": [[0.1 * k, 0.2, 0.3] for k in range(7)]} if at_points else {"components": 7}
    spec = TrainingSpec.model_validate({
        **FIXED.model_dump(), "lift": {"kind": "nystrom", "bandwidth": 0.3, "keep_linear": False, **points},
    })
    lifted = 100 * 3 * 7 + 7**3
    assert operations(task_of("join", spec=spec), 100, asset_type, 20) == lifted + 100 * (7 + 1)
    asked = task_of("tune", tuning=tuned([spec.lift.model_dump()], 2))
    assert operations(asked, 100, asset_type, 20) == lifted + 2 * 1e5, "a cut of few rows costs something too"
    assert operations(asked, 10**5, asset_type, 20) == 1e5 * 21 + 7**3 + 2 * 1e5 * 8


def test_each_plane_of_a_round_is_counted(asset_type: AssetType, three_classes: AssetType) -> None:
    """One against the rest, three classes are three problems: their lift is made once."""
    spec = TrainingSpec.model_validate({**FIXED.model_dump(), "lift": {"kind": "spline", "segments": 6}})
    lifted = operations(task_of("join", spec=spec), 1000, asset_type, 20) - 1000 * 19
    for kind, asked in (("round", {"arrays": message(19)}), ("join", {})):
        one, three = (
            operations(task_of(kind, spec=spec, **asked), 1000, of, 20) - lifted for of in (asset_type, three_classes)
        )
        assert 0 < three == 3 * one


def test_counts_are_no_vectors(asset_type: AssetType) -> None:
    splines = tuned([{"kind": "spline", "segments": 5}], 3)
    assert answer_numbers(task_of("tune", tuning=splines), asset_type) == 3 * 15
    scored = splines.model_copy(update={"scored": True})
    assert answer_numbers(task_of("tune", tuning=scored), asset_type) == 0
