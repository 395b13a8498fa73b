"""What a version's calibration answers at any coverage, and what it refuses; documents of before stay as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from models.conformal.coverage import Counted
from models.conformal.grid import counts_at_or_below, counts_within, score_grid
from models.conformal.spread import STEPS
from services.contracts.errors import ConflictError, InvalidInputError
from services.contracts.evaluation.calibration import Calibration, CalibrationFacts, CountedRows, Spread
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.plans.plan import Plan
from services.contracts.versions.model_version import ModelVersion
from services.registry.gates import check_gates
from tests.versions import a_version

GRID = score_grid()
RIG = AssetType(
    name="rig", features=(Feature(name="flow", unit="1", low=0.0, high=1.0),),
    fault_classes=(FaultClass(name="healthy", severity=0), FaultClass(name="leak", severity=3)),
)


def drawn(kind: str, n: int = 200, **more: Any) -> tuple[Calibration, Any]:
    """A calibration from n errors of one plant, and the errors; the errors are not symmetric."""
    errors = np.random.default_rng(6).exponential(0.1, n) - 0.05
    counts = counts_at_or_below(errors, GRID)
    held = {
        "error": Counted(counts, n).held, "below": Counted(counts, n).held, "above": Counted(counts, n).beyond,
        "absolute": Counted(counts_within(counts), n).held,
    }
    names = {"sets": ("error",), "absolute": ("absolute",), "tails": ("below", "above")}[kind]
    fields = {
        "kind": kind, "grid": tuple(GRID.tolist()), "groups": (CountedRows(n_test=n),),
        "held": {name: tuple(held[name].tolist()) for name in names},
    }
    return Calibration.model_validate(fields | more), errors


@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.95, 0.99])
def test_sets_and_intervals_hold_the_ranks_of_the_errors(coverage: float) -> None:
    found, errors = drawn("sets")
    rank = int(np.ceil(201 * coverage - 1e-9))
    assert found.threshold(coverage) >= np.sort(errors)[rank - 1]
    found, errors = drawn("absolute")
    low, high = found.residuals(coverage)
    assert -low == high >= np.sort(np.abs(errors))[rank - 1] and high < 1.16 * np.sort(np.abs(errors))[rank - 1]
    found, errors = drawn("tails")
    low, high = found.residuals(coverage)
    each = int(np.ceil(201 * (1 + coverage) / 2 - 1e-9))
    assert high >= np.sort(errors)[each - 1] and low <= -np.sort(-errors)[each - 1]
    assert ((low < errors) & (errors <= high)).mean() >= coverage


def test_each_of_the_two_tests_for_unlike_measurements_has_half_of_the_share() -> None:
    """One in forty held-out rows lies beyond either threshold, so at most one in twenty beyond one of them."""
    held = tuple((np.arange(1, len(GRID) + 1) / len(GRID)).tolist())
    found = Calibration(kind="sets", grid=tuple(GRID.tolist()), held={"size": held, "reach": held})
    place = int(np.ceil(0.975 * len(GRID) - 1e-9)) - 1
    assert found.strangest("size") == found.strangest("reach") == GRID[place]


@pytest.mark.parametrize("kind", ["sets", "absolute", "tails"])
def test_from_too_few_rows_nothing_is_left_out_of_a_set_or_an_interval(kind: str) -> None:
    found, _ = drawn(kind, n=20)
    assert found.strangest("size") == found.strangest("reach") == np.inf, "nothing is known to be unlike"
    if kind == "sets":
        assert found.threshold(0.99) == np.inf
    else:
        assert found.residuals(0.99) == (-np.inf, np.inf)
    with pytest.raises(ConflictError, match="held-out rows a plant") as refused:
        found.check(0.99)
    assert refused.value.code == "coverage_not_available"


def by_estimate(n: int = 200) -> Calibration:
    """One plant whose n held-out rows are held step by step; the widest ends are those of the last tenth, above."""
    held = tuple((np.minimum(np.arange(STEPS) * n / 340.0, n) // 1 / (n + 1.0)).tolist())
    lags = tuple(range(90, -10, -10))
    return Calibration(
        kind="spread", grid=tuple(GRID.tolist()), groups=(CountedRows(n_test=n),), held={"spread": held},
        spread=Spread(below=lags, above=(90, *lags[:-1])),
    )


def test_an_interval_by_the_estimate_has_the_ends_of_its_tenth_and_one_outside_the_range_those_of_its_end() -> None:
    found = by_estimate()
    low, high = found.spread_ends(0.9)
    estimates = np.array([-0.3, 0.0, 0.05, 0.55, 0.999, 1.0, 1.7])
    tenths, cut = [0, 0, 0, 5, 9, 9, 9], np.clip(estimates, 0.0, 1.0)
    np.testing.assert_array_equal(found.interval(0.9, estimates), [cut - high[tenths], cut - low[tenths]])
    assert (np.diff(-low) > 0).any() and (found.interval(0.5, estimates)[1] <= found.interval(0.9, estimates)[1]).all()
    facts = CalibrationFacts.of(found, width=30.0)
    assert facts is not None and facts.half_width is None
    assert facts.widths == pytest.approx((30.0 * (high - low)).tolist())
    assert found.check(found.most) == found.most
    with pytest.raises(ConflictError, match="needs 999 held-out rows a plant, the fewest there are 200"):
        found.check(0.999)
    with pytest.raises(ConflictError, match="do not go by the estimate"):
        drawn("absolute")[0].spread_ends(0.9)


def test_shares_by_estimate_go_with_their_shape() -> None:
    fields = by_estimate().model_dump()
    for wrong in (
        {"spread": None}, {"held": {}}, {"held": {"spread": (0.5,)}},
        {"spread": {"below": (0,) * 9, "above": (0,) * 10}}, {"spread": {"below": (-1,) * 10, "above": (0,) * 10}},
    ):
        with pytest.raises(ValidationError):
            Calibration.model_validate(fields | wrong)


def test_a_shift_asks_for_more() -> None:
    plain, _ = drawn("absolute")
    shifted, _ = drawn("absolute", shift=0.05)
    assert shifted.residuals(0.9) == plain.residuals(0.95)
    assert shifted.most == pytest.approx(plain.most - 0.05)


@pytest.mark.parametrize(("kind", "needed"), [("sets", 99), ("absolute", 99), ("tails", 199)])
def test_too_few_rows_are_refused_with_how_many_are_needed(kind: Any, needed: int) -> None:
    found, _ = drawn(kind, n=50)
    with pytest.raises(ConflictError, match=f"coverage 0.99 .* needs {needed} held-out rows a plant, .* 50: ask for"):
        found.check(0.99)
    assert found.check(None) == 0.9 and found.check(0.8) == 0.8
    assert found.check(found.most) == found.most, "the most that it says there is, there is"
    for wrong in (0.0, 1.0, -0.2, float("nan")):
        with pytest.raises(InvalidInputError, match="between 0 and 1"):
            found.check(wrong)


def test_under_a_shift_more_rows_are_needed_and_told() -> None:
    found, _ = drawn("sets", n=50, shift=0.04)
    with pytest.raises(ConflictError, match="coverage 0.95 under a shift of 0.04 .* needs 99 held-out rows a plant"):
        found.check(0.95)


@pytest.mark.parametrize(("kind", "n", "shift"), [("sets", 5, 0.85), ("tails", 1, 0.0)])
def test_rows_that_are_good_for_no_coverage_are_told_so(kind: str, n: int, shift: float) -> None:
    found, _ = drawn(kind, n=n, shift=shift)
    with pytest.raises(ConflictError, match=f"the fewest there are {n}: they are good for none$"):
        found.check(0.1)


def test_where_nothing_was_counted_nobody_gets_a_set_and_who_asks_is_told_why() -> None:
    found = Calibration(kind="sets", note="no plant counted")
    assert found.check(None) is None and found.most == 0.0
    with pytest.raises(ConflictError, match="the version has no calibration: no plant counted"):
        found.check(0.9)
    facts = CalibrationFacts.of(found)
    assert facts is not None and not facts.available and "no plant counted" in facts.note


def test_an_asked_coverage_is_a_condition_of_promotion_and_one_by_default_is_none() -> None:
    plan = Plan(name="rig", asset_type="rig", gates={"max_gap": None})
    for asked, coverage, fails in ((True, 0.99, True), (True, 0.9, False), (False, 0.99, False)):
        found, _ = drawn("sets", n=50, asked=asked, coverage=coverage)
        version = a_version(RIG, np.ones((1, 2)), calibration=found)
        results = [gate for gate in check_gates(plan.gates, version) if gate.name == "coverage"]
        assert [not gate.holds for gate in results] == ([fails] if asked else [])
        assert not fails or "needs 99 held-out rows" in results[0].reason


def test_a_version_of_before_is_stored_as_it_was_and_one_with_a_calibration_comes_back() -> None:
    before = a_version(RIG, np.ones((1, 2)))
    assert "calibration" not in before.to_document(), "its signature covers no such field"
    after = a_version(RIG, np.ones((1, 2)), calibration=drawn("sets")[0])
    again = ModelVersion.from_document(after.to_document())
    assert again.calibration == after.calibration and again.to_document() == after.to_document()
    assert "spread" not in after.to_document()["calibration"], "nor did one of before intervals by the estimate sign it"
    wide = a_version(RIG, np.ones((1, 2)), calibration=by_estimate())
    again = ModelVersion.from_document(wide.to_document())
    assert again.calibration == by_estimate() and again.to_document() == wide.to_document()


def test_a_plan_states_a_coverage_that_there_can_be() -> None:
    assert Plan(name="rig", asset_type="rig").coverage is None
    both = {"coverage": 0.9, "coverage_shift": 0.1}
    for wrong in ({"coverage": 1.0}, {"coverage": 0.0}, {"coverage_shift": 0.2}, both):
        with pytest.raises(ValidationError):
            Plan.model_validate({"name": "rig", "asset_type": "rig", **wrong})


def test_shares_of_another_length_than_the_grid_are_refused() -> None:
    with pytest.raises(ValidationError, match="held error has 2 shares, the grid has 163 thresholds"):
        Calibration(kind="sets", grid=tuple(GRID.tolist()), held={"error": (0.1, 0.2)})
