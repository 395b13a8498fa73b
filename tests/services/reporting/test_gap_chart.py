"""The chart of the gap says in its places what its numbers say."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from services.reporting.gap_chart import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, gap_chart

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*gaps: float, wanted: float = 1e-2, fresh: float = 1.0) -> ElementTree.Element:
    points: Any = [SimpleNamespace(round=number, gap=gap, fresh_weight=fresh) for number, gap in enumerate(gaps, 1)]
    return ElementTree.fromstring(gap_chart(points, wanted))


def marks(chart: ElementTree.Element) -> list[tuple[float, float]]:
    return [(float(each.attrib["cx"]), float(each.attrib["cy"])) for each in chart.iter(f"{SVG}circle")]


def wanted_height(chart: ElementTree.Element) -> float:
    (line,) = [each for each in chart.iter(f"{SVG}line") if "stroke-dasharray" in each.attrib]
    assert line.attrib["y1"] == line.attrib["y2"]
    return float(line.attrib["y1"])


def test_decades_have_equal_heights_and_a_small_gap_is_low() -> None:
    chart = drawn(1.0, 0.1, 0.01, wanted=0.01)
    (left, high), (middle, between), (right, low) = marks(chart)
    assert (left, middle, right) == (LEFT, (LEFT + WIDTH - RIGHT) / 2, WIDTH - RIGHT)
    assert (high, between, low) == (TOP, (TOP + HEIGHT - BOTTOM) / 2, HEIGHT - BOTTOM)
    assert wanted_height(chart) == low


def test_a_wanted_gap_beyond_all_rounds_is_inside_the_frame() -> None:
    for wanted in (1e-6, 1e3, 0.0):
        assert TOP <= wanted_height(drawn(0.5, 0.4, wanted=wanted)) <= HEIGHT - BOTTOM


def test_rounds_without_a_bound_are_left_out_and_a_gap_of_0_is_the_smallest() -> None:
    chart = drawn(math.inf, 1e-3, 0.0)
    assert [round(x) for x, _ in marks(chart)] == [(LEFT + WIDTH - RIGHT) / 2, WIDTH - RIGHT]
    assert marks(chart)[1][1] == HEIGHT - BOTTOM
    assert "no round has a finite gap" in "".join(drawn(math.inf).itertext())
    assert marks(drawn(wanted=1.0)) == []


@pytest.mark.parametrize(("fresh", "fill"), [(1.0, "black"), (0.999, "white")])
def test_a_hollow_mark_is_a_round_that_not_all_answered(fresh: float, fill: str) -> None:
    (mark,) = drawn(0.1, fresh=fresh).iter(f"{SVG}circle")
    assert mark.attrib["fill"] == fill


def test_a_mark_tells_its_round_its_gap_and_how_much_answered() -> None:
    (mark,) = drawn(math.inf, 0.0123456, fresh=0.75).iter(f"{SVG}circle")
    assert "".join(mark.itertext()) == "round 2: gap 0.0123, fresh weight 0.75"


@pytest.mark.parametrize(("last", "ticks"), [(1, [1]), (12, [*range(1, 13)]), (20, [1, *range(2, 21, 2)])])
def test_the_last_round_has_a_tick_where_steps_reach_it(last: int, ticks: list[int]) -> None:
    texts = ["".join(each.itertext()) for each in drawn(*[0.5] * last).iter(f"{SVG}text")]
    assert [int(text) for text in texts if text.isdecimal() and text != "1"] == ticks[1:]
