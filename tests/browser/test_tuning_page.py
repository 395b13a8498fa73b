"""A tuning alone in a browser: asked for on the plan's page, followed to its end, and drawn for everybody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from services.contracts.access.identity import Role
from services.contracts.plans.plan import Plan
from tests.browser.conftest import PLANTS, Site
from tests.browser.test_pages import faults
from tests.flows.conftest import RIG

GRID = {"radius": [1.0, 10.0], "lifts": ["none", {"kind": "spline", "segments": 3}], "folds": 3}


@pytest.fixture(scope="module")
def tuning(site: Site) -> Site:
    site.works.context.store.plans.create(Plan.model_validate({
        "name": "rig-tuned", "asset_type": RIG.name, "reveal": "each site", "sites": PLANTS, "tuning": GRID,
    }))
    return site


def test_a_tuning_is_asked_for_and_its_page_shows_the_choice_by_itself(
    tuning: Site, looking: Callable[..., Any]
) -> None:
    seen = looking("dark", 820)
    seen.sign_in(tuning.tokens[Role.OPERATOR])
    seen.open("/console/plans/rig-tuned")
    seen.page.get_by_role("button", name="Choose its terms, train nothing").click()
    seen.page.get_by_role("heading", name="Tuning of rig-tuned").wait_for()
    address = seen.page.url.removeprefix(seen.url)
    drawing = seen.page.get_by_role("img", name="Held-out score by candidate")
    drawing.wait_for(timeout=120_000)
    assert tuning.driver.failures == []
    (run,) = tuning.backend.store.runs.list_runs(plan="rig-tuned")
    assert run.plan.tuned is not None and address == f"/console/runs/{run.run_id}"
    assert drawing.locator("circle").count() == len(run.plan.tuned.candidates) == 4
    said = seen.page.locator("main").inner_text()
    assert "tuned, nothing was trained" in said and said.count("asked for the tuning alone") == len(PLANTS)
    for look, width in (("light", 1280), ("dark", 820)):
        again = looking(look, width)
        again.sign_in(tuning.tokens[Role.VIEWER])
        for path in (address, "/console/runs"):
            again.open(path)
            assert faults(again.page) == []
            beyond = again.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert beyond <= 0, f"{path} is {beyond} px wider than the window"
        again.check()
    seen.check()
