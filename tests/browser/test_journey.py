"""An operator's morning, in a browser: from signing in to finding it all in the audit trail."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from services.contracts.access.identity import Role
from tests.browser.conftest import PLAN, PLANTS, Seen, Site


def train(seen: Seen, number: int) -> None:
    """Trigger the plan and watch the gap close until the run has made its version."""
    seen.open(f"/console/plans/{PLAN}")
    seen.page.get_by_label("Why (may be left out)").first.fill(f"training {number}")
    seen.page.get_by_role("button", name="Trigger a run now").click()
    seen.page.wait_for_url(re.compile(r"/console/runs/[0-9a-f]{32}$"))
    seen.page.wait_for_function("() => Number(document.getElementById('told-rounds').textContent) >= 2")
    if number == 1:
        assert seen.page.locator("#bounds canvas").count() == 1, "the chart that follows is drawn"
    seen.page.get_by_role("link", name=f"Version {number}", exact=True).wait_for(timeout=60_000)
    assert seen.page.locator(".badge", has_text="completed").first.is_visible()


def promote(seen: Seen, number: int, why: str) -> None:
    seen.open(f"/console/models/{PLAN}/versions/{number}")
    seen.page.get_by_label("Why it should be champion").fill(why)
    seen.page.get_by_role("button", name="Promote").click()
    seen.page.locator(".tiles .badge", has_text="champion").wait_for()


def test_an_operators_morning(site: Site, looking: Callable[..., Any]) -> None:
    seen = looking()
    seen.sign_in(site.tokens[Role.ADMINISTRATOR])
    page = seen.page
    for plant in PLANTS:
        row = page.get_by_role("row", name=re.compile(rf"^{plant} "))
        assert row.get_by_text("connected").is_visible()
    train(seen, 1)
    promote(seen, 1, "the first one, and its gates hold")
    train(seen, 2)
    page.get_by_role("link", name="Version 2", exact=True).click()
    page.get_by_role("link", name="Fairness", exact=True).click()
    assert page.get_by_role("img", name="Lorenz curves").is_visible()
    assert page.get_by_text("A promotion would change").is_visible()
    assert page.get_by_role("rowheader", name="plant-3", exact=True).is_visible()
    promote(seen, 2, "as good, and newer")

    seen.open("/console/diagnose")
    page.wait_for_url(re.compile(r"/diagnose$"))
    page.get_by_label("flow, by sliding").fill("2.5")
    assert page.locator("#reading-1").input_value() == "2.5"
    page.locator("#reading-2").fill("1.5")
    page.get_by_role("button", name="Diagnose", exact=True).click()
    answer = page.locator(".answer")
    answer.wait_for()
    assert "leak" in answer.inner_text()
    assert page.get_by_text("How far one reading may be off").is_visible()

    seen.open(f"/console/models/{PLAN}")
    page.get_by_label("Why go back").fill("version 2 misses a leak at plant-3")
    page.get_by_role("button", name="Roll back to version 1").click()
    page.wait_for_url(re.compile(r"/versions/1$"))

    seen.open("/console/audit?verify=true")
    for told in ("The chain is whole", "as good, and newer", "version 2 misses a leak at plant-3", "training 2"):
        assert page.get_by_text(told).first.is_visible(), told
    for action in ("plan.trigger", "model.promote", "model.rollback", "session.begin"):
        assert page.get_by_role("link", name=action).first.is_visible(), action
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(re.compile(r"/sign-in"))
    seen.open("/console/audit")
    assert page.get_by_label("Token").is_visible()
    assert site.driver.failures == []
    seen.check()
