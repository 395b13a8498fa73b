"""Every page in a browser: for everybody (axe-core, A and AA), all our own, readable without a script."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from api.backend.actor import Actor
from api.models import service as models
from api.plans import service as plans
from services.contracts.access.identity import Role
from tests.browser.conftest import PLAN, Site
from tests.browser.screenshots import addresses

AXE = (Path(__file__).parent / "assets" / "axe.min.js").read_text(encoding="utf-8")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
CUT = """[...document.querySelectorAll(".scroll")].filter(each => each.scrollWidth > each.clientWidth)
  .map(each => `${each.getAttribute("aria-label")}: ${each.scrollWidth} px in ${each.clientWidth}`)"""
"""Tables that go on beyond their card, which nobody sees."""
OVER = """[...document.querySelectorAll("td, th")].filter(each => !each.querySelector("details")).filter(each => {
  const words = document.createRange(), cell = each.getBoundingClientRect();
  words.selectNodeContents(each);
  return [...words.getClientRects()].some(part => part.right > cell.right + 1 || part.left < cell.left - 1);
}).map(each => each.innerText)"""
"""Cells whose words stand over those of a neighbour."""
PAGES = (
    "fleet", "runs", "run", "compare", "models", "model", "fairness", "diagnose", "plans", "plan", "privacy", "audit",
    "admin", "system", "components",
)


@pytest.fixture(scope="module")
def trained(site: Site) -> Iterator[Site]:
    """The console after two runs, with a champion and a challenger."""
    actor = Actor("test", Role.ADMINISTRATOR)
    for _ in range(2):
        run = plans.trigger(site.backend, actor, PLAN)
        until = time.monotonic() + 120
        while site.backend.store.runs.get_run(run.run_id).status in ("pending", "running"):
            assert time.monotonic() < until, "the run did not end"
            time.sleep(0.1)
    assert site.driver.failures == []
    if models.champion_of(site.backend, PLAN) is None:
        models.promote(site.backend, actor, PLAN, "1", "the first one")
    yield site


def faults(page: Any) -> list[str]:
    """What axe-core finds against WCAG, A and AA: the rule, and the first element."""
    page.evaluate(AXE)
    found = page.evaluate("(rules) => axe.run(document, { runOnly: rules })", RULES)
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]} {each['nodes'][0].get('failureSummary', '')[:300]}"
            for each in found["violations"]]


@pytest.mark.parametrize(("look", "width"), [("light", 1280), ("dark", 820)])
def test_every_page_is_accessible_whole_and_our_own(
    trained: Site, looking: Callable[..., Any], look: str, width: int
) -> None:
    seen = looking(look, width)
    seen.open("/console/sign-in")
    assert faults(seen.page) == []
    seen.sign_in(trained.tokens[Role.ADMINISTRATOR])
    found = addresses(seen.page, seen.url)
    for name in PAGES:
        seen.open(found[name])
        seen.page.wait_for_timeout(100)
        assert faults(seen.page) == [], name
        beyond = seen.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert beyond <= 0, f"{name} is {beyond} px wider than the window"
        assert width < 1280 or seen.page.evaluate(CUT) == [], name
    seen.check()


def test_the_answer_of_a_diagnosis_is_accessible(trained: Site, looking: Callable[..., Any]) -> None:
    for look in ("light", "dark"):
        seen = looking(look)
        seen.sign_in(trained.tokens[Role.VIEWER])
        seen.open(f"/console/models/{PLAN}/diagnose")
        seen.page.get_by_role("button", name="Diagnose", exact=True).click()
        seen.page.locator(".answer").wait_for()
        assert faults(seen.page) == []
        seen.check()


def test_long_names_of_classes_and_sensors_stay_on_a_telephone(trained: Site, looking: Callable[..., Any]) -> None:
    """A name is one word of sixty letters and more, which no browser breaks by itself."""
    seen = looking("light", 400)
    seen.sign_in(trained.tokens[Role.ADMINISTRATOR])
    for address in (f"/console/models/{PLAN}/versions/1", f"/console/models/{PLAN}/diagnose"):
        seen.open(address)
        if address.endswith("diagnose"):
            seen.page.get_by_role("button", name="Diagnose", exact=True).click()
            seen.page.locator(".answer").wait_for()
        seen.page.evaluate(
            """name => document.querySelectorAll(".answer, main p strong, main h3, .reading label span:first-child")
               .forEach(each => { each.firstChild.textContent = name })""",
            "severe_degradation_of_the_" * 3,
        )
        beyond = seen.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert beyond <= 0, f"{address} is {beyond} px wider than the window"


def test_no_words_stand_over_those_of_a_neighbour_where_names_are_long(
    trained: Site, looking: Callable[..., Any]
) -> None:
    """A bar beside a figure is no width of its own to a table that has too little."""
    seen = looking("light", 1280)
    seen.sign_in(trained.tokens[Role.ADMINISTRATOR])
    found = addresses(seen.page, seen.url)
    for name in ("fleet", "model", "fairness"):
        seen.open(found[name])
        assert seen.page.locator("td.n > svg.bar").count(), name
        for width in (1280, 1000, 700, 400):
            seen.page.set_viewport_size({"width": width, "height": 900})
            for length in (1, 2, 3):
                seen.page.evaluate(
                    """name => {
                      for (const each of document.querySelectorAll("tbody th")) each.textContent = name;
                      for (const each of document.querySelectorAll("td.n > svg.bar"))
                        each.nextSibling.data = "0.0123 %";
                    }""",
                    "the-plant-of-" * length,
                )
                assert seen.page.evaluate(OVER) == [], (name, width, length)


def test_every_page_is_read_without_a_script(trained: Site, looking: Callable[..., Any]) -> None:
    seen = looking(script=False)
    seen.sign_in(trained.tokens[Role.ADMINISTRATOR])
    found = addresses(seen.page, seen.url)
    for name in PAGES:
        seen.open(found[name])
        assert seen.page.locator("h1").inner_text().strip(), name
        assert len(seen.page.locator("main").inner_text().split()) > 20, name
    seen.open(found["run"])
    assert seen.page.locator("#gap svg.chart").is_visible(), "the server's own drawing"
    assert "UTC" in seen.page.locator("time").first.inner_text()
    seen.open(f"/console/plans/{PLAN}")
    seen.page.get_by_label("TOML").fill("name = 1")
    seen.page.get_by_role("button", name="Check and show the changes").click()
    assert seen.page.get_by_text("The plan does not fit").is_visible()
    seen.open("/docs")
    assert seen.page.get_by_text("/v1/models/{name}/diagnose").first.is_visible()


def test_the_interactive_page_of_the_api_works_offline(trained: Site, looking: Callable[..., Any]) -> None:
    seen = looking()
    seen.sign_in(trained.tokens[Role.VIEWER])
    seen.open("/docs")
    seen.page.locator("#operations-models-list_models_v1_models_get").wait_for()
    seen.page.locator("#operations-models-list_models_v1_models_get button").first.click()
    seen.page.get_by_role("button", name="Execute").click()
    seen.page.locator(".live-responses-table .response-col_status", has_text="200").wait_for()
    seen.check()


def test_a_change_of_a_plan_is_shown_before_it_is_made(trained: Site, looking: Callable[..., Any]) -> None:
    seen = looking()
    seen.sign_in(trained.tokens[Role.ADMINISTRATOR])
    seen.open(f"/console/plans/{PLAN}")
    text = seen.page.get_by_label("TOML")
    text.fill(text.input_value().replace("max_rounds = 60", "max_rounds = 61"))
    seen.page.get_by_role("button", name="Check and show the changes").click()
    row = seen.page.locator("#checked").get_by_role("row", name="max_rounds 60 61")
    row.wait_for()
    assert seen.page.url.endswith(f"/console/plans/{PLAN}"), "the page stayed"
    assert trained.backend.store.plans.get(PLAN).plan.max_rounds == 60
    seen.check()


@pytest.mark.parametrize("answer", [503, 502, None])
def test_a_part_that_is_not_answered_stays_and_is_asked_for_again(
    trained: Site, looking: Callable[..., Any], answer: int | None
) -> None:
    """An API that restarts behind a proxy: the fleet's page lost its plants for good, as if all were well."""
    seen = looking()
    seen.page.clock.install()
    seen.sign_in(trained.tokens[Role.VIEWER])

    def away(route: Any) -> None:
        if answer is None:
            route.abort()
        else:
            route.fulfill(status=answer, content_type="text/html", body="<html><body><h1>Bad</h1></body></html>")

    seen.page.route("**/console", away)
    told, wants = seen.page.locator("#unanswered"), seen.page.get_by_role("heading", name="Wants attention")
    seen.page.clock.fast_forward(16_000)
    told.wait_for()
    assert "may be old" in told.inner_text() and wants.is_visible()
    seen.page.unroute("**/console")
    seen.page.clock.fast_forward(16_000)
    told.wait_for(state="hidden")
    assert wants.is_visible()


def test_a_plan_that_cannot_be_checked_stays_as_it_was_written(trained: Site, looking: Callable[..., Any]) -> None:
    """What a failure is answered with is a page: it stood within the page, a second one, and the text was lost."""
    seen = looking()
    for left_to_do in ("sign in", "open the page again"):
        seen.sign_in(trained.tokens[Role.ADMINISTRATOR])
        seen.open(f"/console/plans/{PLAN}")
        seen.page.get_by_label("TOML").fill("name = 1")
        cookies = seen.page.context.cookies()
        seen.page.context.clear_cookies()
        if left_to_do == "open the page again":  # who signed out and in again, in another window
            other = seen.page.context.new_page()
            other.goto(f"{seen.url}/console/sign-in")
            other.get_by_label("Token").fill(trained.tokens[Role.ADMINISTRATOR])
            other.get_by_role("button", name="Sign in").click()
            other.wait_for_url(f"{seen.url}/console")
            assert other.context.cookies() != cookies
        seen.page.get_by_role("button", name="Check and show the changes").click()
        told = seen.page.locator("#unanswered")
        told.wait_for()
        assert left_to_do in told.inner_text()
        assert seen.page.get_by_label("TOML").input_value() == "name = 1"
        assert seen.page.locator("main").count() == 1


def test_the_look_is_switched_and_stays(trained: Site, looking: Callable[..., Any]) -> None:
    seen = looking("light")
    seen.sign_in(trained.tokens[Role.VIEWER])
    background = "getComputedStyle(document.documentElement).backgroundColor"
    before = seen.page.evaluate(background)
    seen.page.get_by_role("button", name="Dark look").click()
    after = seen.page.evaluate(background)
    assert before != after
    seen.open("/console/runs")
    assert seen.page.evaluate(background) == after
    seen.check()


def test_the_demos_link_signs_in_and_leaves_no_token_behind(trained: Site, looking: Callable[..., Any]) -> None:
    seen = looking()
    token = trained.tokens[Role.OPERATOR]
    seen.open(f"/console/sign-in#token={token}")
    seen.page.wait_for_url(f"{seen.url}/console")
    assert "Ada the operator" in seen.page.locator(".who").inner_text()
    assert all(token not in address for address in seen.requests)
    seen.page.go_back()
    assert token not in seen.page.url
