"""What becomes of a version once it stands in the registry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from flows.publish import promote_if_gates_hold
from services.contracts.plans.plan import Plan
from services.contracts.problems.training_spec import TrainingSpec


@pytest.mark.parametrize(
    ("auto_promote", "max_gap", "promoted", "said"),
    [
        (True, 1e-2, True, "version 3 is champion"),
        (False, 1e-2, False, "version 3 stays challenger: the plan leaves promotion to an operator"),
        (True, 1e-9, False, "version 3 stays challenger: max_gap: 0.001 is not at or below 1e-09"),
    ],
)
def test_a_version_is_promoted_if_its_gates_hold_and_its_plan_says_so(
    auto_promote: bool, max_gap: float, promoted: bool, said: str
) -> None:
    done: list[str] = []
    trail: list[dict[str, Any]] = []

    def note(what: str) -> Any:
        def noted(*_: Any, **given: Any) -> None:
            done.append(what)
            if what == "audit":
                trail.append(given)

        return noted

    def judge(name: str, version: str, status: str, reason: str) -> Any:
        done.append("status")
        return SimpleNamespace(status=status, reason=reason)

    @contextmanager
    def atomic() -> Iterator[Any]:
        yield SimpleNamespace(
            model_versions=SimpleNamespace(
                record_alias=note("alias"), follow_alias=note("alias before"), forgotten_numbers=lambda _: frozenset()
            ),
            audit=SimpleNamespace(append=note("audit")),
        )

    versions = SimpleNamespace(
        get=lambda *_: SimpleNamespace(status="registered"), set_status=judge, had_alias=lambda *_: False
    )
    context: Any = SimpleNamespace(
        store=SimpleNamespace(model_versions=versions, atomic=atomic),
        registry=SimpleNamespace(promote=note("promoted"), aliases=lambda _: {}),
    )
    plan = Plan.model_validate(
        {"name": "nightly", "asset_type": "rig", "auto_promote": auto_promote, "gates": {"max_gap": max_gap}}
    )
    run: Any = SimpleNamespace(plan=plan, run_id="0" * 32)
    version: Any = SimpleNamespace(
        name="nightly", version="3", certified_gap=1e-3, objective=1.0, lower_bound=0.999, absolute_gap=0.0,
        refuted="",
        f1=None, mae=None, coverage=None, fresh_weight=1.0, sites=(), calibration=None,
        spec=TrainingSpec(), weights=np.array([[1.0, -0.5]]),
        asset_type=SimpleNamespace(class_names=("healthy", "leak")),
    )
    assert promote_if_gates_hold(context, run, version) == said
    assert done == ["status", *(["alias", "audit", "promoted", "alias before"] if promoted else [])]
    assert [(each["target"], each["after"]) for each in trail] == [("model:nightly", {"version": "3"})] * promoted
