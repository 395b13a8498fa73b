"""A run's page follows the run: charts, tiles and the stream, by the page's own script in a real browser."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from api.console.views.runs import RunPage
from services.contracts.history.run import Run
from services.contracts.plans.plan import Plan
from tests.browser.served import ADDRESS, rendered, serve
from tests.versions import START, a_round

RUN = "ab" * 16
KEPT_CHARTS = """
window.charts = [];
uPlot = class extends uPlot { constructor(...told) { super(...told); window.charts.push(this); } };
"""
SOURCES = """
window.sources = [];
window.EventSource = class extends EventTarget {
  static CLOSED = 2;
  constructor(address) { super(); this.address = address; this.readyState = 1; window.sources.push(this); }
  close() { this.readyState = 2; }
};
window.tell = (kind, data) => sources.at(-1).dispatchEvent(new MessageEvent(kind, { data: JSON.stringify(data) }));
"""
KEPT_WORDS = """
window.words = [];
window.bounds = [];
const write = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
  (this.canvas.closest("#gap") ? window.words : window.bounds).push(String(text));
  return write.call(this, text, ...rest);
};
"""
DRAWN = "charts.slice(-2).map(chart => chart.data.map(each => Array.from(each)))"


def a_page(status: str, points: list[tuple[float, float, float]]) -> str:
    """Page of a run of so many rounds, by upper bound, lower bound and gap."""
    plan = Plan(name="valves", asset_type="valve", gap=1e-3)
    last = points[-1][2] if points else None
    run = Run(
        run_id=RUN, plan=plan, status=status, created_at=START, updated_at=START, rounds=len(points), gap=last,
    )
    told = tuple(
        a_round(RUN, number, upper=upper, lower=lower, gap=gap) for number, (upper, lower, gap) in enumerate(points, 1)
    )
    found = RunPage(run, told, (), (), ())
    return rendered("run.html", found=found, run=run, shown=told, forgotten={}, bounds="As the server drew it.", gap="")


@pytest.fixture
def follow(browser: Any) -> Any:
    """Open a run's page; streams are stand-ins that the test speaks through, charts are kept."""
    pages = []

    def opened(text: str) -> tuple[Any, list[str]]:
        page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
        pages.append(page)
        page.clock.install()
        page.add_init_script(SOURCES + KEPT_WORDS)
        asked = serve(page, text, {"vendor/uplot.min.js": KEPT_CHARTS})
        return page, asked

    yield opened
    for page in pages:
        page.close()


Follow = Callable[[str], tuple[Any, list[str]]]
TWO_ROUNDS = [(1.0, -math.inf, math.inf), (0.5, 0.2, 0.6)]


def rounds(*numbers: int) -> dict[str, Any]:
    """News of some rounds as the API tells them."""
    gaps = [0.3 / number for number in numbers]
    return {
        "status": "running", "doing": "training", "rounds": numbers[-1], "cancelling": False, "round": list(numbers),
        "upper": [0.4] * len(numbers), "lower": [0.25] * len(numbers), "gap": gaps, "fresh": [1.0] * len(numbers),
        "seconds": [1.0] * len(numbers),
    }


def test_charts_and_tiles_follow_the_rounds(follow: Follow) -> None:
    page, _ = follow(a_page("running", TWO_ROUNDS))
    assert page.evaluate("sources.map(each => each.address)") == [f"/console/runs/{RUN}/events?after=2"]
    bounds, gap = page.evaluate(DRAWN)
    assert bounds == [[1, 2], [1.0, 0.5], [None, 0.2]] and gap == [[1, 2], [None, 0.6], [1e-3, 1e-3]]
    names = page.evaluate("charts.map(chart => chart.series.map(each => each.label))")
    assert names == [["round", "upper", "lower"], ["round", "proven gap", "wanted"]]
    page.evaluate("news => tell('rounds', news)", rounds(3, 4))
    bounds, gap = page.evaluate(DRAWN)
    assert bounds == [[1, 2, 3, 4], [1.0, 0.5, 0.4, 0.4], [None, 0.2, 0.25, 0.25]]
    assert gap == [[1, 2, 3, 4], [None, 0.6, pytest.approx(0.1), pytest.approx(0.075)], [1e-3] * 4]
    assert page.locator("#told-doing").inner_text() == "training"
    assert page.locator("#told-rounds").inner_text() == "4" and page.locator("#told-gap").inner_text() == "7.50e-2"
    none = rounds(5) | {"round": [], "upper": [], "lower": [], "gap": []}
    page.evaluate("news => tell('rounds', news)", none)
    assert page.evaluate(DRAWN) == [bounds, gap] and page.locator("#told-gap").inner_text() == "7.50e-2"


def test_a_gap_of_nothing_is_drawn_where_a_logarithm_can_be(follow: Follow) -> None:
    page, _ = follow(a_page("running", [(0.5, 0.5, 0.0)]))
    assert page.evaluate(DRAWN)[1][1] == [1e-12]
    page.evaluate("news => tell('rounds', news)", rounds(2) | {"gap": [0.0]})
    assert page.evaluate(DRAWN)[1][1] == [1e-12, 1e-12]


def test_a_run_that_begins_is_drawn_from_its_first_round(follow: Follow) -> None:
    page, _ = follow(a_page("pending", []))
    assert page.evaluate("sources[0].address").endswith("?after=0")
    assert page.evaluate("charts.length") == 0 and page.locator("#bounds").inner_text() == "As the server drew it."
    page.evaluate("news => tell('rounds', news)", rounds(1))
    assert page.evaluate(DRAWN)[0] == [[1], [0.4], [0.25]]


def test_a_stream_that_was_refused_is_asked_for_again_and_one_that_was_cut_is_the_browsers(follow: Follow) -> None:
    page, _ = follow(a_page("running", TWO_ROUNDS))
    page.evaluate("news => tell('rounds', news)", rounds(3))
    page.evaluate("sources[0].readyState = 0; tell('error', null)")
    page.clock.fast_forward(60_000)
    assert page.evaluate("sources.length") == 1, "a browser goes on by itself"
    page.evaluate("sources[0].readyState = 2; tell('error', null)")
    page.clock.fast_forward(4_000)
    assert page.evaluate("sources.length") == 1
    page.clock.fast_forward(2_000)
    assert page.evaluate("sources.map(each => each.address)")[1].endswith("?after=3"), "no round is told twice"


def test_at_its_end_the_page_is_read_anew_and_a_run_that_ended_is_not_followed(follow: Follow) -> None:
    page, asked = follow(a_page("running", TWO_ROUNDS))
    with page.expect_navigation():
        page.evaluate("tell('end', {reason: 'certified'})")
    assert asked.count(ADDRESS) == 2
    page, _ = follow(a_page("completed", TWO_ROUNDS))
    assert page.evaluate("sources.length") == 0 and page.evaluate(DRAWN)[0][0] == [1, 2]


def test_charts_fit_the_window_and_the_look(follow: Follow) -> None:
    page, _ = follow(a_page("completed", TWO_ROUNDS))
    inside = "charts.slice(-2).map(each => [each.width, each.root.parentElement.clientWidth, each.root.isConnected])"
    assert all(width == room for width, room, _ in page.evaluate(inside))
    before = page.evaluate(inside)[0][0]
    page.set_viewport_size({"width": 900, "height": 900})
    page.wait_for_function(f"charts.at(-1).width !== {before}")
    assert all(width == room != before and there for width, room, there in page.evaluate(inside))
    ink = "[charts.at(-1).series[1].stroke(), charts.length, document.querySelectorAll('#live canvas').length]"
    light, _, drawn = page.evaluate(ink)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("charts.length === 4")
    dark, _, still = page.evaluate(ink)
    assert dark != light and still == drawn == 2, "the former charts are gone"
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    page.evaluate("document.dispatchEvent(new CustomEvent('ballast:theme'))")
    assert page.evaluate(ink) == [light, 6, 2]


@pytest.mark.parametrize(("gaps", "powers"), [
    ((0.6, 0.01), [-3, -2, -1, 0]), ((0.6, 1e-7), [-7, -6, -5, -4, -3, -2, -1, 0]),
    ((0.6, 1e-8), [-8, -6, -4, -2, 0]), ((1.0, 0.0), [-12, -10, -8, -6, -4, -2, 0]),
])
def test_the_axis_of_the_gap_names_powers_of_ten_eight_at_most(
    follow: Follow, gaps: tuple[float, float], powers: list[int]
) -> None:
    page, _ = follow(a_page("completed", [(1.0, 0.5, gap) for gap in gaps]))
    page.wait_for_function("words.length > 4")
    assert [word for word in page.evaluate("words") if word not in ("1", "2", "round")] == [f"1e{at}" for at in powers]


@pytest.mark.parametrize(("bounds", "named"), [
    ((0.0726365, 0.0726188), ["0.072620", "0.072625", "0.072630", "0.072635"]),
    ((0.5, 0.2), ["0.2", "0.3", "0.4", "0.5"]),
    ((1.0, 0.0), ["0.00", "0.25", "0.50", "0.75", "1.00"]), ((250.0, 210.0), ["210", "220", "230", "240", "250"]),
])
def test_the_axis_of_the_bounds_tells_neighbours_apart(
    follow: Follow, bounds: tuple[float, float], named: list[str]
) -> None:
    """The drawing by itself ends at three decimals, and the first of these axes would say .073 four times."""
    page, _ = follow(a_page("completed", [(*bounds, 1e-3), (*bounds, 1e-3)]))
    page.wait_for_function("bounds.length > 4")
    found = [word for word in page.evaluate("window.bounds") if word != "round"]
    assert found[-len(named):] == named
    page.evaluate("charts.at(-2).setCursor({left: 5, top: 5})")
    told = page.locator("#bounds .u-value").all_inner_texts()
    assert told[1:] == [f"{bound:.6g}" for bound in bounds]
