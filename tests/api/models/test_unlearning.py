"""A plant is asked to be unlearned: what is there at once, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api.models.unlearning import without_site
from services.contracts.access.identity import Role
from services.contracts.errors import ConflictError
from services.contracts.plans.plan import Plan
from services.identity.enrolment_codes import issue_code
from tests.api.conftest import MODEL, RUN_ID, SITES


def unlearn(world: Any, name: str = MODEL, **body: Any) -> Any:
    wanted = {"site": SITES[0], "reason": "the plant was sold"} | body
    return world.call(Role.ADMINISTRATOR, "POST", f"/v1/admin/models/{name}/unlearn", wanted)


def test_a_plant_leaves_and_a_run_without_it_is_due(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.models.unlearning.MAX_PAGE", 2)  # more backups than one page of the trail
    store = world.backend.store
    for run in store.runs.unfinished_runs(MODEL):
        store.runs.finish_run(run.run_id, "failed", "a test")
    refused = {
        "another model": (unlearn(world, "nobody"), 404), "no such plant": (unlearn(world, site="nobody"), 404),
        "no reason": (unlearn(world, reason=" "), 422), "no such purge": (unlearn(world, purge="later"), 422),
    }
    assert {name: answer.status_code for name, (answer, _) in refused.items()} == {
        name: code for name, (_, code) in refused.items()
    }
    assert store.sites.get(SITES[0]).status == "active"
    code = issue_code(
        SITES[0], "triplex-pump", datetime.now(UTC), timedelta(days=1), created_by="ada", certificate=None,
        replaces_key=True,
    )
    store.enrolment_codes.add(code.stored)
    for month in ("november", "december", "january"):
        store.audit.append(actor="ada", role=None, action="backup.made", target="store", after={"file": f"of-{month}"})
    later = store.runs.create_run(store.plans.get(MODEL).plan)
    store.runs.begin_run(later.run_id, store.runs.get_run(RUN_ID).sites)
    store.runs.finish_run(later.run_id, "failed", "a test")
    answer = unlearn(world, purge="now")
    assert answer.status_code == 202, answer.text
    told = answer.json()
    run = store.runs.get_run(told["run_id"])
    assert (run.status, run.leaving.site_id, run.leaving.at_once) == ("pending", SITES[0], True)
    assert RUN_ID in told["runs"] and told["purge"] == "now" and "audit" in told["stays"]
    assert told["backups"] == ["of-january", "of-december", "of-november"], "all made since the plant first took part"
    assert store.sites.get(SITES[0]).status == "removed"
    gone = store.audit.list_events(action="site.remove")[0]
    assert (gone.target, gone.reason) == (f"site:{SITES[0]}", "the plant was sold")
    assert store.plans.get(MODEL).plan.sites == tuple(SITES[1:]) == run.plan.sites
    entry = store.audit.list_events(action="model.unlearn")[0]
    assert entry.after == {"site": SITES[0], "run_id": run.run_id, "purge": "now"}
    assert entry.reason == "the plant was sold" and store.audit.verify_chain().ok
    assert store.enrolment_codes.list_open() == [], "nor may the plant come back by a code of before"
    assert unlearn(world).json()["code"] == "run_unfinished"
    store.runs.finish_run(run.run_id, "cancelled", "a test")
    later = store.runs.get_run(unlearn(world).json()["run_id"])
    assert later.leaving.site_id == SITES[0] and not later.leaving.at_once


def test_the_plan_without_the_plant_keeps_the_others_in_proportion() -> None:
    own = {"a": {"weight": 0.5}, "b": {"weight": 0.3}, "c": {"weight": 0.2, "label_flip_cost": 2.0}}
    named = {"name": "p", "asset_type": "rig", "sites": ["a", "b", "c"], "reveal": "each site"}
    plan = Plan.model_validate(named | {"site_settings": own})
    fewer = without_site(plan, "a")
    assert fewer.sites == ("b", "c") and fewer.explicit_weights == pytest.approx({"b": 0.6, "c": 0.4})
    assert fewer.site_settings["c"].label_flip_cost == 2.0
    assert without_site(fewer, "a") == fewer
    waits = {"reveal": "each site", "waiting": {"sites": {"a": 30.0, "b": 0.0}}}
    for sites in (["a", "b", "c"], []):
        waited = Plan.model_validate({"name": "p", "asset_type": "rig", "sites": sites} | waits)
        assert without_site(waited, "a").waiting.sites == {"b": 0.0}
    alone = Plan.model_validate({"name": "p", "asset_type": "rig", "sites": ["a"]})
    with pytest.raises(ConflictError, match="archive it"):
        without_site(alone, "a")


def test_a_plan_that_would_name_fewer_sites_than_it_wants_is_not_left_so() -> None:
    """Else the enrolment would end, and each run that is to forget the plant would fail."""
    named = {"name": "p", "asset_type": "rig", "sites": ["a", "b", "c"], "reveal": "each site"}
    with pytest.raises(ConflictError, match="wants 3 sites at least and names 2 without a.*fewer min_sites first"):
        without_site(Plan.model_validate(named | {"min_sites": 3}), "a")
    assert without_site(Plan.model_validate(named | {"min_sites": 2}), "a").sites == ("b", "c")
    own = {"min_sites": 3, "site_settings": {"a": {"weight": 1}}}
    by_type = Plan.model_validate({"name": "p", "asset_type": "rig"} | own)
    assert without_site(by_type, "a").min_sites == 3, "others may enrol"


def test_a_plan_that_would_name_fewer_sites_than_a_sum_is_over_is_not_left_so() -> None:
    """As one of three plants, by default: each run that is to forget the plant would fail."""
    named = {"name": "p", "asset_type": "rig", "sites": ["a", "b", "c", "d"]}
    assert without_site(Plan.model_validate(named), "a").sites == ("b", "c", "d")
    for fewer in ({"sites": ["a", "b", "c", "c"]}, {"min_cohort": 4}):
        with pytest.raises(ConflictError, match='sums over . sites at least and names . without a.*"each site" first'):
            without_site(Plan.model_validate(named | fewer), "a")
    by_type = {"name": "p", "asset_type": "rig", "site_settings": {"a": {"weight": 1}}}
    assert without_site(Plan.model_validate(by_type), "a").site_settings == {}, "others may enrol"
