"""What the pages of a version are made of: no plant's name for who may not know it, and no weights for anybody."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from api.console.views import models as views
from api.console.views.models import Served, fairness, version_page
from services.contracts.documents import to_plain
from services.contracts.evaluation.fairness import SiteFairness
from services.reporting.fairness_report import fairness_report
from tests.api.conftest import SITES

NAMES = re.compile(r"plant-[a-z]+")


def test_no_part_of_a_versions_page_names_a_plant_to_who_may_not_know_it(shared_world: Any) -> None:
    backend = shared_world.backend
    shown, real = (version_page(backend, "pumps", "champion", newest=9, real=real) for real in (False, True))
    assert set(NAMES.findall(json.dumps(real.parts))) >= set(SITES)
    assert NAMES.findall(repr(shown) + json.dumps(shown.parts)) == []
    assert shown.number == real.number == "1" and shown.is_champion


def test_the_parts_of_a_page_are_those_of_version_and_report_without_the_weights(shared_world: Any) -> None:
    """They would run anywhere: an export is for operators, and leaves an entry."""
    found = version_page(shared_world.backend, "pumps", "1", newest=9, real=True)
    assert found.report is not None and found.note == ""
    assert set(found.parts) == {*type(found.version).model_fields, *type(found.report).model_fields} - {"weights"}


def test_no_part_of_a_fairness_page_names_a_plant_to_who_may_not_know_it(shared_world: Any) -> None:
    shown, real = (fairness(shared_world.backend, "pumps", "1", real=real) for real in (False, True))
    assert {each.here.site_id: each.champion for each in real.plants} == dict.fromkeys(SITES), "it is the champion"
    assert NAMES.findall(repr(shown) + json.dumps(to_plain(shown.report))) == []
    assert {each.site_id for each in real.report.sites} == set(SITES)


def site(name: str, loss: float | None, risk: float | None = None) -> SiteFairness:
    return SiteFairness(site_id=name, weight=0.25, loss=loss, worst_case_risk=risk)


@pytest.mark.parametrize(("here", "champion", "change"), [
    (0.5, 0.25, 0.25), (0.25, 0.5, -0.25), (0.5, None, None), (None, 0.5, None),
])
def test_a_promotion_changes_a_plants_loss_by_what_is_here_less_the_champions(
    here: float | None, champion: float | None, change: float | None
) -> None:
    """Above 0 it becomes worse for the plant."""
    assert Served(site("a", here), site("a", champion)).change == change
    assert Served(site("a", here), None).change is None
    assert Served(site("a", here), site("a", champion), comparable=False).change is None


def test_the_worst_served_plant_comes_first_and_who_tells_nothing_last(
    shared_world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = fairness_report
    sites = (site("best", 0.125), site("silent", None), site("worst", 0.5), site("by-risk", None, 0.25))
    monkeypatch.setattr(views, "fairness_report", lambda *given: made(*given).model_copy(update={"sites": sites}))
    found = fairness(shared_world.backend, "pumps", "1", real=True)
    assert [each.here.site_id for each in found.plants] == ["worst", "by-risk", "best", "silent"]


def test_of_all_versions_a_page_has_as_many_of_the_newest_as_it_shows(world: Any) -> None:
    """Those of ten years of nights take seconds to list."""
    first, second, third = world.new_model("valves", 0.9, 0.8, 0.7)
    found = version_page(world.backend, "valves", first, newest=2, real=True)
    assert [each.version for each in found.versions] == [third, second] and found.in_all == 3
    assert found.number == first and found.mlflow_run == world.backend.registry.mlflow_run_id("valves", first)
