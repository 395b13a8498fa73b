"""What a parameter may be, at the ends of its range, and what its refusal says."""

from __future__ import annotations

import math

import pytest

from models.losses.catalogue import get_loss
from models.methods.catalogue import get_method
from models.methods.protocol import Range, prox_solver, risk_solver


@pytest.mark.parametrize(
    ("allowed", "inside", "outside", "text"),
    [
        (Range(0.0, 1.0), (1e-300, 1.0), (0.0, 1.0 + 1e-15, math.nan), "above 0 and at most 1"),
        (Range(0.0, 1.0, open_low=False, open_high=True), (0.0, 0.999), (-1e-300, 1.0), "at or above 0 and below 1"),
        (Range(0.0, math.inf), (1e300,), (math.inf, 0.0), "above 0"),
        (
            Range(1, 8, open_low=False, whole=True), (1, 3.0, 8), (0, 1.5, 9, math.nan),
            "a whole number at or above 1 and at most 8",
        ),
    ],
)
def test_a_range_holds_its_closed_ends_and_no_open_one(
    allowed: Range, inside: tuple[float, ...], outside: tuple[float, ...], text: str
) -> None:
    assert all(value in allowed for value in inside)
    assert not any(value in allowed for value in outside)
    assert str(allowed) == text


def test_what_solves_a_site_s_problem_is_named_after_loss_and_support() -> None:
    hinge, logistic, huber = (get_loss(name) for name in ("hinge", "logistic", "huber"))
    assert risk_solver(hinge, "box") == "exact worst case by price search"
    assert risk_solver(hinge, "polytope").startswith("worst case on a polytope")
    assert risk_solver(logistic, "unbounded") == "exact worst case by selection"
    assert risk_solver(huber, "unbounded") == "exact worst case in closed form"
    assert prox_solver(hinge, "unbounded") != prox_solver(hinge, "box") == prox_solver(logistic, "unbounded")


def test_where_nothing_is_moved_no_support_counts() -> None:
    assert [get_method("standard").place(kind) for kind in ("box", "polytope")] == ["unbounded", "unbounded"]
    assert get_method("level-bundle").place("box") == "box"
    assert get_method("standard").solver_names(loss=get_loss("hinge"), support="box")[0].endswith("by selection")
