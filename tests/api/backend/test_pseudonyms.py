from __future__ import annotations

import pytest

from api.backend.pseudonyms import Pseudonyms
from services.contracts.history.run import Run, SiteAnswer, SiteTermsRecord, SummedSites
from services.contracts.plans.plan import Plan
from services.contracts.versions.report import GateResult, MissedRound

KEY = bytes(range(32))


def run(*sites: str, reason: str = "") -> Run:
    return Run.model_validate({
        "run_id": "0" * 32, "plan": {"name": "pumps", "asset_type": "pump", "sites": sites}, "status": "failed",
        "reason": reason, "created_at": "2031-01-01T00:00:00Z", "updated_at": "2031-01-01T00:00:00Z",
        "sites": tuple(SiteTermsRecord(site_id=site, weight=0.5, radius=1.0, n_samples=3) for site in sites),
        "absentees": tuple(SiteAnswer(site_id=site, status="absent", reason=f"{site} is away") for site in sites),
    })


def test_a_name_depends_on_key_model_and_site_alone() -> None:
    names = Pseudonyms(KEY)
    assert names.name("pumps", "a") == Pseudonyms(KEY).name("pumps", "a")
    others = {names.name("pumps", "b"), names.name("turbines", "a"), Pseudonyms(KEY[::-1]).name("pumps", "a")}
    assert names.name("pumps", "a") not in others
    assert len(others) == 3


def test_no_real_name_is_left_in_ids_lists_and_reasons() -> None:
    names = Pseudonyms(KEY)
    shown = names.applied("pumps", run("plant", "plant-2", reason="plant, plant-2: away; (plant-3) too"), ["plant-3"])
    text = shown.model_dump_json()
    assert "plant" not in text
    one, two, three = (names.name("pumps", site) for site in ("plant", "plant-2", "plant-3"))
    assert shown.reason == f"{one}, {two}: away; ({three}) too"
    assert shown.plan.sites == tuple(sorted((one, two)))


def test_sites_that_key_settings_bear_their_pseudonyms_too() -> None:
    names = Pseudonyms(KEY)
    own = {"plant": {"weight": 0.4}, "plant-2": {"weight": 0.6, "label_flip_cost": float("inf")}}
    plan = Plan.model_validate({"name": "pumps", "asset_type": "pump", "site_settings": own})
    shown = names.applied("pumps", run().model_copy(update={"plan": plan})).plan
    assert {site: settings.weight for site, settings in shown.site_settings.items()} == {
        names.name("pumps", "plant"): 0.4, names.name("pumps", "plant-2"): 0.6,
    }
    assert list(shown.site_settings) == sorted(shown.site_settings)


@pytest.mark.parametrize("sites", [(), ("plant", "plant-2", "sites")])
def test_sites_that_a_plan_waits_for_bear_their_pseudonyms_too(sites: tuple[str, ...]) -> None:
    """Also one that is called as the field is; where the plan names its sites, those that it waits for are of them."""
    names, own = Pseudonyms(KEY), {"sites": {"weight": 0.4, "label_flip_cost": 2.0}} if not sites else {}
    plan = Plan.model_validate({
        "name": "pumps", "asset_type": "pump", "reveal": "each site", "sites": sites, "site_settings": own,
        "waiting": {"sites": {"plant": 30.0, "plant-2": 0.0}},
    })
    told = names.applied("pumps", run(reason="a weight of plant is 0").model_copy(update={"plan": plan}))
    assert told.reason == f"a weight of {names.name('pumps', 'plant')} is 0"
    shown = told.plan
    assert "plant" not in shown.model_dump_json()
    assert shown.waiting.sites == {names.name("pumps", "plant"): 30.0, names.name("pumps", "plant-2"): 0.0}
    assert list(shown.waiting.sites) == sorted(shown.waiting.sites)
    assert [each.label_flip_cost for each in shown.site_settings.values()] == [2.0] * (not sites)


def test_a_site_named_like_a_word_or_a_plan_changes_nothing_else() -> None:
    shown = Pseudonyms(KEY).applied("pumps", run("pumps", "pump", "failed", reason="failed-over, unfailed"))
    assert (shown.plan.name, shown.plan.asset_type, shown.status) == ("pumps", "pump", "failed")
    assert shown.reason == "failed-over, unfailed"


def test_sites_stand_in_the_order_of_their_pseudonyms() -> None:
    names = Pseudonyms(KEY)
    sites = [f"plant-{number}" for number in range(8)]
    shown = [site.site_id for site in names.applied("pumps", run(*sites)).sites]
    assert shown == sorted(names.name("pumps", site) for site in sites)
    assert shown != [names.name("pumps", site) for site in sites]


def test_reasons_of_gates_and_missed_rounds_are_covered() -> None:
    names = Pseudonyms(KEY)
    gate = GateResult(name="min_site_f1", wanted=0.5, found=None, holds=False, reason="no held-out score from a, b")
    a, b = names.name("m", "a"), names.name("m", "b")
    assert names.applied("m", gate, ["a", "b"]).reason == f"no held-out score from {a}, {b}"
    missed = MissedRound(round=1, site_id="a", status="late", reason="a was late")
    assert "a was" not in names.applied("m", missed).reason


def test_the_sites_of_a_cohort_bear_their_pseudonyms() -> None:
    names = Pseudonyms(KEY)
    shown = names.applied("m", SummedSites(name="cohort-1", sites=("a", "b")))
    assert shown.name == "cohort-1" and set(shown.sites) == {names.name("m", "a"), names.name("m", "b")}
