"""Every page whole, as an outline that is kept: nothing is lost from a page, or comes into it, without a word.

Where a page is meant to change, ``KEEP_PAGES=1 pytest tests/api/console/test_whole_pages.py`` writes the
outlines anew; what changed is then to be read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from api.backend.actor import Actor
from api.console.rendering import environment
from api.console.views.diagnose import Margin, Result
from api.models.service import promote
from services.contracts.access.identity import Role
from services.contracts.evaluation.diagnosis import ContributingSensor, Diagnosis
from services.contracts.evaluation.estimate import Estimate, Interval
from services.contracts.machines.asset_type import Feature
from tests.api.conftest import MODEL, RUN_ID
from tests.api.console.outline import outline

KEPT = Path(__file__).parent / "outlines"
VALVES = "/console/models/valves"
PAGES = {
    "fleet": "/console", "runs": "/console/runs", "run": f"/console/runs/{RUN_ID}",
    "compare": f"/console/runs/compare?left={RUN_ID}&right={RUN_ID}", "models": "/console/models",
    "champion": f"{VALVES}/versions/1", "version": f"{VALVES}/versions/2",
    "fairness": f"{VALVES}/versions/2/fairness", "diagnose": f"{VALVES}/diagnose", "choose": "/console/diagnose",
    "plans": "/console/plans", "plan": f"/console/plans/{MODEL}",
    "audit": "/console/audit?action=model.promote&actor=the+founder", "admin": "/console/admin",
    "privacy": "/console/privacy", "components": "/console/components",
}


@pytest.fixture(scope="module")
def looked_at(
    tmp_path_factory: pytest.TempPathFactory, new_sqlite: Callable[[], str], new_mlflow: Callable[[Path], str],
    opening: Callable[..., Any], signed_in: Callable[..., Any],
) -> Iterator[dict[Role, Any]]:
    """Two who look at a world of its own, which no other test changes."""
    home = tmp_path_factory.mktemp("looked-at")
    mlflow = {"tracking_uri": new_mlflow(home), "artifact_root": (home / "artifacts").as_uri()}
    with opening(home, new_sqlite(), mlflow) as world:
        for name, scores in (("valves", (0.9, 0.7)), ("seals", (0.9,))):
            world.new_model(name, *scores)
            promote(world.backend, Actor("the founder", Role.ADMINISTRATOR), name, "1", "the first one")
        yield {role: signed_in(world, role) for role in (Role.ADMINISTRATOR, Role.VIEWER)}


OF_A_VIEWER = ("compare", "diagnose", "models", "plans", "audit", "components")
"""Where plants are told, a viewer has names for them, and an order, that differ from database to database."""
CASES = [(Role.ADMINISTRATOR, name) for name in PAGES] + [(Role.VIEWER, name) for name in OF_A_VIEWER]


EMPTY = ("fleet", "runs", "models", "plans", "audit", "privacy")


def kept(name: str, html: str, begins: str) -> None:
    """Hold a page, from where something begins, to what was kept of it."""
    found, file = outline(html), KEPT / f"{name}.txt"
    found = found[found.index(begins):]
    if os.environ.get("KEEP_PAGES"):
        file.write_text(found, encoding="utf-8")
    assert found.splitlines() == file.read_text(encoding="utf-8").splitlines(), "is it meant? See this file's beginning"


@pytest.mark.parametrize(("role", "name"), CASES, ids=lambda each: str(getattr(each, "value", each)))
def test_a_page_is_as_it_was_kept(looked_at: dict[Role, Any], role: Role, name: str) -> None:
    begins = "<title>" if name == "components" else "<main"  # what surrounds a page is the same on all
    kept(f"{name}-{role.value}", looked_at[role].get(PAGES[name]).text, begins)


def test_pages_of_a_service_that_nobody_has_used_are_as_they_were_kept(
    tmp_path: Path, new_sqlite: Callable[[], str], new_mlflow: Callable[[Path], str], opening: Callable[..., Any],
    signed_in: Callable[..., Any], somebody: Callable[..., Any],
) -> None:
    mlflow = {"tracking_uri": new_mlflow(tmp_path), "artifact_root": (tmp_path / "artifacts").as_uri()}
    with opening(tmp_path, new_sqlite(), mlflow, filled=False) as world:
        person = signed_in(world)
        for name in EMPTY:
            kept(f"{name}-empty", person.get(PAGES[name]).text, "<main")
        kept("sign-in", somebody(world).get("/console/sign-in?to=/console/runs").text, "<body")


FLOW = ContributingSensor(feature="flow", value=31.2345678, unit="L/min", contribution=0.7654321)
OIL = ContributingSensor(feature="oil", value=55.5555555, unit="degC", contribution=-0.1234567)
SENSORS = (
    Feature(name="flow", unit="L/min", low=20.0, high=60.0),
    Feature(name="particles", unit="1/mL", low=1.0, high=1e4, scale="log"),
)
SURE = Diagnosis(
    fault_class="leak", severity=2, scores={"ok": -0.7654321, "leak": 0.7654321}, robustness_radius=0.0987654,
    contributing_sensors=(FLOW, OIL), class_set=("leak",), coverage=0.9,
    probabilities={"ok": 0.1234567, "leak": 0.8765433},
)
UNSURE = Diagnosis(
    fault_class="ok", severity=0, scores={"ok": 0.1, "leak": -0.1}, robustness_radius=None, contributing_sensors=(),
    class_set=(), coverage=0.95, clipped=("flow",), imputed=("oil",), abstained=True, reason="it is unlike anything",
)
WEAR = Estimate(
    value=12.3456789, unit="um", interval=Interval(low=1.23456789, high=98.7654321, confidence=0.8),
    conformal=Interval(low=10.1234567, high=15.7654321, confidence=0.9, kind="conformal"),
    contributing_sensors=(FLOW,),
)
DOUBTED = Estimate(
    value=3.0, unit="um", interval=Interval(low=0.0, high=9.0, confidence=0.8), contributing_sensors=(),
    clipped=("flow", "oil"), abstained=True, reason="it is unlike anything",
)
MARGINS = (Margin(SENSORS[0], 31.2345678, 3.9506160), Margin(SENSORS[1], 100.0, 90.7654321))
ANSWERS = {
    "sure": Result(SURE, None, MARGINS, 0.0493827), "unsure": Result(UNSURE, None, ()),
    "wear": Result(None, WEAR, ()), "doubted": Result(None, DOUBTED, ()),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_told_as_it_was_kept(name: str) -> None:
    for template, count in (("answer", 1), ("answers", 2)):
        card = environment().from_string(f'{{% import "parts.html" as parts %}}{{% include "{template}.html" %}}')
        kept(f"{template}-{name}", card.render(results=[ANSWERS[name]] * count), "<section")
