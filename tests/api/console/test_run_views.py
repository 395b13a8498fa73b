"""What the pages of a run and of two runs are made of: no plant's name for a viewer, each side its own figures."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Any

from api.console.views.runs import comparison, run_page
from services.contracts.history.run import RoundRecord, SiteAnswer, SiteTermsRecord
from tests import versions
from tests.api.conftest import a_plan

SITES = tuple(f"plant-{letter}" for letter in "abcdefgh")
NAMES = re.compile(r"plant-[a-z]+")


def begun(world: Any, name: str, **changes: Any) -> str:
    """A run that eight plants joined, and a ninth did not."""
    store = world.backend.store
    away = SiteAnswer(site_id="plant-north", status="absent", code="no_responders", reason="plant-north is not there")
    terms = tuple(SiteTermsRecord(site_id=site, weight=0.125, radius=1.0, n_samples=9) for site in SITES)
    run = store.runs.create_run(a_plan(name, **{"sites": (*SITES, "plant-north")} | changes))
    store.runs.begin_run(run.run_id, terms, (away,))
    return str(run.run_id)


def committed(world: Any, run_id: str, number: int, *answers: SiteAnswer, **changes: Any) -> None:
    told = versions.a_round(run_id, number, *answers, started_at=datetime.now(UTC), **changes)
    world.backend.store.runs.commit_round(RoundRecord.model_validate(told), {})


def test_no_part_of_a_runs_page_names_a_plant_to_who_may_not_know_it(world: Any) -> None:
    run_id = begun(world, "reported")
    refused = {"status": "refused_by_site", "code": "busy", "reason": "as plant-north, plant-h and plant-a are"}
    convicted = {"status": "excluded", "code": "implausible", "reason": "plant-h cannot be right, nor plant-north"}
    answers = [versions.an_answer(site) for site in SITES[:6]]
    committed(world, run_id, 1, *answers, versions.an_answer(SITES[6], **refused),
              versions.an_answer(SITES[7], **convicted))
    shown, real = (run_page(world.backend, run_id, real=real) for real in (False, True))
    assert set(NAMES.findall(repr(real))) == {*SITES, "plant-north"}
    assert NAMES.findall(repr(shown)) == []
    assert {each.site_id for each in real.missed} == set(SITES[6:]) and len(shown.last) == len(SITES)
    # The order of the real names would tell who is who.
    for each in (shown.totals, shown.last):
        assert [part.site_id for part in each] == sorted(part.site_id for part in each)
    assert set(real.weights) == set(SITES[:7]), "the model has nothing of a plant that the run goes on without"


def test_two_runs_have_each_their_own_figures_and_no_plants_names(world: Any) -> None:
    longer, shorter = begun(world, "longer"), begun(world, "shorter", max_rounds=7, sites=SITES)
    for number, gap in ((1, math.inf), (2, 0.5), (3, 0.25)):
        committed(world, longer, number, versions.an_answer(SITES[0]), gap=gap)
    committed(world, shorter, 1, versions.an_answer(SITES[0]), gap=0.125)
    found = comparison(world.backend, longer, shorter, real=False)
    assert (found.left.run_id, found.right.run_id) == (longer, shorter)
    for shown, run_id in ((found.left, longer), (found.right, shorter)):
        assert shown == run_page(world.backend, run_id, real=False).run, "under the names of its own page"
    assert found.series == {"round": [1, 2, 3], "left": [None, 0.5, 0.25], "right": [0.125, None, None]}
    assert found.changes["max_rounds"] == (100, 7) and "sites" in found.changes and NAMES.findall(repr(found)) == []
    assert NAMES.findall(repr(comparison(world.backend, longer, shorter, real=True)))
