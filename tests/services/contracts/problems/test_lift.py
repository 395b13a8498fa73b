"""Lifts of a problem: documents of before still load, and what does not fit is refused with one line."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from models.basics import ProblemError
from models.geometry.supports import BoxSupport
from services.contracts.documents import to_plain
from services.contracts.errors import InvalidInputError
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.plans.plan import Plan
from services.contracts.plans.plan_problem import check_problem
from services.contracts.problems.lift import (
    FourierLiftSpec,
    LiftSpec,
    NystromLiftSpec,
    ProductLiftSpec,
    SplineLiftSpec,
    draw_lift,
    is_accounted,
    lifted_size,
    numbered,
    pinned,
)
from services.contracts.problems.support import scaled_support
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.wire.codec import encode, unpack
from services.contracts.wire.messages import Task
from services.coordinator.run_state.terms import shared_spec

SPECS: list[dict[str, Any]] = [
    {"kind": "fourier", "components": 5, "bandwidth": 0.5, "seed": 1},
    {"kind": "spline", "segments": 6},
    {"kind": "products", "features": [2, 0], "squares": True},
    {"kind": "products", "features": [2, 0], "squares": True, "segments": 6},
    {"kind": "nystrom", "components": 7, "bandwidth": 0.5, "seed": 3},
    {"kind": "nystrom", "points": [[0.1, 0.2, 0.3], [1.0, 0.0, 0.5]], "bandwidth": 0.5, "keep_linear": False},
]
READ: TypeAdapter[LiftSpec] = TypeAdapter(LiftSpec)


def test_a_lift_of_before_there_were_kinds_is_a_fourier_lift_and_stays_as_it_was() -> None:
    spec = TrainingSpec.model_validate({"lift": {"components": 4, "bandwidth": 0.7, "seed": 9}})
    assert spec.lift == FourierLiftSpec(components=4, bandwidth=0.7, seed=9)
    assert to_plain(spec)["lift"] == {
        "kind": "fourier", "components": 4, "bandwidth": 0.7, "seed": 9, "keep_linear": True, "fingerprint": None,
    }
    found = pinned(spec.lift, 3)
    assert found is not None  # as drawn and written down before there were other kinds
    assert found.fingerprint == "19fa53dc266cfd94189a5cca4a8982a215186f4c5543cd48d3ba23952da32c79"


@pytest.mark.parametrize("given", SPECS, ids=lambda given: str(sorted(given)))
def test_a_lift_is_pinned_drawn_and_read_back(given: dict[str, Any]) -> None:
    spec = pinned(READ.validate_python(given), 3)
    assert spec is not None and spec.kind == given["kind"]
    again = READ.validate_python(to_plain(spec))
    assert again == spec and READ.validate_json(READ.dump_json(spec)) == spec
    lift = draw_lift(again, 3)
    assert lift is not None and lift.fingerprint == spec.fingerprint and lift.n_outputs == lifted_size(spec, 3)


@pytest.mark.parametrize(("given", "said"), [
    ({"kind": "spline", "segments": 0}, "greater than or equal to 1"),
    ({"kind": "spline", "segments": 65}, "less than or equal to 64"),
    ({"kind": "spline", "segments": 4, "seed": 3}, "Extra inputs are not permitted"),
    ({"kind": "wavelet"}, "the kind of a lift is fourier, spline, products or nystrom"),
    ({"kind": "nystrom", "bandwidth": 1.0}, "components, drawn from its seed, or points: one of the two"),
    ({"kind": "nystrom", "bandwidth": 1.0, "components": 2, "points": [[0.5]]}, "one of the two"),
    ({"kind": "nystrom", "bandwidth": 1.0, "points": [[1.5]]}, "less than or equal to 1"),
    ({"kind": "products", "features": []}, "at least 1 item"),
    ({"kind": "products", "features": [0, 1], "segments": 0}, "greater than or equal to 1"),
    ({"kind": "products", "features": [0, 1], "segments": 65}, "less than or equal to 64"),
])
def test_what_is_no_lift(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        READ.validate_python(given)


def test_products_without_segments_go_to_plants_as_they_did_before_there_were_any() -> None:
    """Plants of before refuse a key that they do not know; and digests of terms are over what is written."""
    spec = READ.validate_python({"kind": "products", "features": [2, 0]})
    assert spec == ProductLiftSpec(kind="products", features=(2, 0), segments=1)
    told = {"kind": "products", "features": [2, 0], "squares": False, "fingerprint": None}
    assert TrainingSpec(lift=spec).model_dump(mode="json")["lift"] == told
    task = Task(
        run_id="0" * 32, site_id="plant-1", round=0, kind="join", method="level-bundle", asset_type="pump",
        contract="0" * 64, spec=TrainingSpec(lift=spec),
    )
    assert unpack(encode(task), 10**6).header["spec"]["lift"] == told
    lines = TrainingSpec(lift=ProductLiftSpec(kind="products", features=(2, 0), segments=6))
    assert lines.model_dump(mode="json")["lift"] == told | {"segments": 6}


def test_products_say_whether_splines_are_beside_them() -> None:
    plain = ProductLiftSpec(kind="products", features=("flow", "speed"), squares=True)
    assert plain.words == "products of the features flow, speed (with squares), with the features themselves"
    lines = plain.model_copy(update={"segments": 6})
    assert lines.words.endswith("flow, speed (with squares), with a spline of 6 segments for each sensor")


def test_no_lift_is_accounted_for_by_the_rows_coefficients() -> None:
    """A slope along a local feature is of few rows; products and waves are more equations than a row has readings."""
    assert not any(is_accounted(READ.validate_python(given)) for given in SPECS) and is_accounted(None)


def test_products_are_of_named_features() -> None:
    spec = ProductLiftSpec(kind="products", features=("pressure", 0))
    with pytest.raises(ProblemError, match="give numbers from 0"):
        draw_lift(spec, 3)
    found = numbered(spec, ("flow", "speed", "pressure"))
    assert found == ProductLiftSpec(kind="products", features=(2, 0))
    with pytest.raises(ProblemError, match="'pressure' is none of them"):
        numbered(spec, ("flow", "speed"))
    with pytest.raises(ProblemError, match="none with number 7"):
        draw_lift(ProductLiftSpec(kind="products", features=(0, 7)), 3)


def test_what_does_not_fit_the_features() -> None:
    with pytest.raises(ProblemError, match="the lift makes 12800 features, 4096 at most"):
        draw_lift(SplineLiftSpec(kind="spline", segments=64), 200)
    with pytest.raises(ProblemError, match="needs 4 numbers, one for each feature"):
        draw_lift(NystromLiftSpec(kind="nystrom", points=((0.5, 0.5),), bandwidth=1.0), 4)


PUMP = AssetType(
    name="pump", features=tuple(Feature(name=name, unit="1", low=-5.0, high=5.0) for name in ("flow", "pressure")),
    fault_classes=(FaultClass(name="healthy", severity=0), FaultClass(name="leak", severity=3)),
)


def test_the_sensor_ranges_are_the_box_of_the_ramps_and_products() -> None:
    beside = draw_lift(ProductLiftSpec(kind="products", features=(0, 1), segments=4), 2)
    both = scaled_support("sensor_ranges", PUMP, "classification", beside)
    assert isinstance(both, BoxSupport) and both.high.tolist() == [0.25] * 8 + [1.0]
    lift = draw_lift(SplineLiftSpec(kind="spline", segments=4), 2)
    box = scaled_support("sensor_ranges", PUMP, "classification", lift)
    assert isinstance(box, BoxSupport)
    assert box.low.tolist() == [0.0] * 8 and box.high.tolist() == [0.25] * 8


@pytest.mark.parametrize(("lift", "said"), [
    ({"kind": "products", "features": ["flow", "speed"]}, "'speed' is none of them"),
    ({"kind": "products", "features": ["flow", 2]}, "none with number 2"),
    ({"kind": "products", "features": ["flow", 0]}, "chosen twice"),
    ({"kind": "nystrom", "points": [[0.1, 0.2, 0.3]], "bandwidth": 1.0}, "needs 2 numbers"),
    ({"kind": "spline", "segments": 4, "fingerprint": "0" * 64}, "the lift drawn here has the fingerprint"),
])
def test_a_plan_whose_lift_does_not_fit_the_asset_type_is_refused_in_one_line(lift: dict[str, Any], said: str) -> None:
    plan = Plan.model_validate({"name": "bent", "asset_type": "pump", "spec": {"lift": lift}})
    with pytest.raises(InvalidInputError, match=said) as refusal:
        check_problem(plan, PUMP)
    assert "\n" not in str(refusal.value)


def test_a_plan_of_named_products_states_numbers_to_the_plants() -> None:
    lift = {"kind": "products", "features": ["pressure", "flow"]}
    plan = Plan.model_validate({"name": "bent", "asset_type": "pump", "spec": {"lift": lift}})
    check_problem(plan, PUMP)
    stated = shared_spec(plan, PUMP).lift
    assert isinstance(stated, ProductLiftSpec) and stated.features == (1, 0) and stated.fingerprint is not None
    bent = Plan.model_validate({"name": "bent", "asset_type": "pump", "spec": {"lift": {**lift, "segments": 6}}})
    check_problem(bent, PUMP)
    more = shared_spec(bent, PUMP).lift
    assert isinstance(more, ProductLiftSpec) and (more.features, more.segments) == ((1, 0), 6)
    assert more.fingerprint not in (None, stated.fingerprint)


def test_a_polytope_does_not_go_with_a_lift() -> None:
    support = {"matrix": [[1.0, 0.0]], "limits": [1.0]}
    with pytest.raises(ValidationError, match="leave out the lift, or the polytope"):
        TrainingSpec.model_validate({"lift": {"kind": "spline", "segments": 4}, "support": support})
