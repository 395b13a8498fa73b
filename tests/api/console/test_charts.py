"""Charts of the console say in their places what their numbers say, and escape their names."""

from __future__ import annotations

import re
from math import inf, nan

import pytest

from api.console.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Line, bar, legend, line_chart


def places(chart: str) -> list[tuple[float, float]]:
    found = re.findall(r'<circle[^>]* cx="([\d.]+)" cy="([\d.]+)"', chart)
    return [(float(x), float(y)) for x, y in found]


def test_a_line_goes_from_corner_to_corner_and_up_is_more() -> None:
    chart = line_chart("title", [Line("one", [(1, 0.0), (2, 5.0), (3, 10.0)])], "round", "value")
    assert places(chart) == [
        (LEFT, HEIGHT - BOTTOM), ((LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2), (WIDTH - RIGHT, TOP)
    ]


def test_a_logarithmic_axis_has_whole_decades_and_a_place_for_0() -> None:
    chart = line_chart("title", [Line("one", [(1, 1.0), (2, 0.1), (3, 0.01)])], "round", "gap", log=True)
    assert [y for _, y in places(chart)] == [TOP, (TOP + HEIGHT - BOTTOM) / 2, HEIGHT - BOTTOM]
    assert re.findall(r">(1e-?\d+)<", chart) == ["1e-2", "1e-1", "1e0"]
    assert [y for _, y in places(line_chart("t", [Line("one", [(1, 1.0), (2, 0.0)])], "", "", log=True))][1] == (
        HEIGHT - BOTTOM
    )


def test_a_logarithmic_axis_ends_at_the_decades_around_its_values() -> None:
    chart = line_chart("title", [Line("one", [(1, 0.5), (2, 0.05)])], "round", "gap", log=True)
    assert re.findall(r">(1e-?\d+)<", chart) == ["1e-2", "1e-1", "1e0"]
    assert all(TOP < y < HEIGHT - BOTTOM for _, y in places(chart))


def test_ends_that_are_given_make_charts_alike() -> None:
    chart = line_chart("title", [Line("one", [(0, 1.0), (1, 2.0)])], "x", "y", within=(0.0, 4.0))
    high, low = HEIGHT - BOTTOM, TOP
    assert [y for _, y in places(chart)] == [high - (high - low) / 4, high - (high - low) / 2]


@pytest.mark.parametrize("missing", [None, nan, inf])
def test_a_line_is_broken_where_a_value_is_missing(missing: float | None) -> None:
    chart = line_chart("title", [Line("one", [(1, 1.0), (2, 2.0), (3, missing), (4, 3.0), (5, 4.0)])], "x", "y")
    (path,) = re.findall(r'class="line a" d="([^"]+)"', chart)
    assert re.sub("[^ML]", "", path) == "MLML" and len(places(chart)) == 4
    assert "No figure to draw yet." in line_chart("title", [Line("one", [(1, missing)])], "x", "y")


def test_marks_stand_where_points_are_few() -> None:
    for n, marked in ((40, 40), (41, 0)):
        assert len(places(line_chart("t", [Line("one", [(x, float(x)) for x in range(n)])], "x", "y"))) == marked


def test_what_is_measured_has_ticks_between_whole_numbers() -> None:
    chart = line_chart("title", [Line("one", [(0.5, 100.0), (1.0, 200.0), (2.0, 300.0)])], "radius", "value")
    assert ">1.4<" in chart


def test_what_is_counted_has_whole_ticks() -> None:
    chart = line_chart("title", [Line("one", [(1, 0.5), (3, 0.7)])], "round", "value")
    assert re.findall(rf'y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">([^<]+)<', chart) == ["1", "2", "3"]


def test_a_tick_stands_where_its_number_is() -> None:
    chart = line_chart("title", [Line("one", [(2, 10.0), (4, 20.0)])], "round", "value")
    foot = re.findall(rf'<text x="([\d.]+)" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">([^<]+)<', chart)
    assert foot == [
        (f"{place:.1f}", number)
        for place, number in ((LEFT, "2"), ((LEFT + WIDTH - RIGHT) / 2, "3"), (WIDTH - RIGHT, "4"))
    ]
    side = re.findall(r'<text x="[\d.]+" y="([\d.]+)" text-anchor="end">([^<]+)<', chart)
    assert (side[0], side[-1]) == ((f"{HEIGHT - BOTTOM + 4:.1f}", "10"), (f"{TOP + 4:.1f}", "20"))


@pytest.mark.parametrize(("low", "high"), [(-0.3, 0.3), (0.0, 0.3), (-0.7, -0.1), (0.1, 0.7), (-6e5, 4e5)])
def test_an_end_that_is_a_round_number_has_its_tick_whatever_its_sign(low: float, high: float) -> None:
    chart = line_chart("x", [Line("a", [(0.0, low), (1.0, high)])], "t", "y")
    shown = [float(each) for each in re.findall(r'text-anchor="end">([^<]+)<', chart)]
    assert shown[0] == low and shown[-1] == high


def test_ticks_of_a_narrow_range_far_from_0_are_told_apart() -> None:
    """A mains frequency, an air pressure in Pa: four digits are one number."""
    for ends, told in (
        ((49.995, 50.005), ["49.996", "49.998", "50", "50.002", "50.004"]),
        ((101325.0, 101375.0), ["101330", "101340", "101350", "101360", "101370"]),
    ):
        chart = line_chart("title", [Line("one", [(ends[0], 0.0), (ends[1], 1.0)])], "x", "y")
        assert re.findall(r'text-anchor="middle">([\d.e+]+)<', chart) == told


def test_names_are_escaped_and_one_series_needs_no_legend() -> None:
    bad = "<script>\""
    lines = [Line(bad, [(1, 1.0), (2, 2.0)], kind=bad), Line("two", [(1, 2.0)])]
    chart = line_chart(bad, lines, bad, bad)
    assert "<script" not in chart and chart.count("&lt;script&gt;") >= 6
    assert legend(lines[:1]) == "" and "<li>" in legend(lines)


def test_a_bar_is_as_long_as_its_share_and_a_negative_one_goes_left() -> None:
    assert 'width="25.0"' in bar(0.25) and 'width="100.0"' in bar(7.0)
    assert 'class="plus" x="50.0" width="25.0"' in bar(0.5, "signed")
    assert 'class="minus" x="25.0" width="25.0"' in bar(-0.5, "signed")
    assert bar(None) == bar(nan) == bar(inf) == ""
