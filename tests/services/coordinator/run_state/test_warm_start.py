"""What a run takes over of the one before: nothing where anything that the cuts are of could have changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.cohorts.dealing import cohort_problem
from models.cuts.evidence import EARLIER_RUN, Evidence, with_answers
from models.methods.catalogue import get_method
from models.one_vs_rest import OneVsRestServer
from services.contracts.history.run import ExcludedSite, Run, RunStart, SiteTermsRecord
from services.contracts.keys.signing import new_seed_file
from services.contracts.plans.plan import Plan
from services.coordinator.run_state.terms import cohorts_of, server_problem
from services.coordinator.run_state.training_state import Training
from services.coordinator.run_state.warm_start import Earlier, run_start, warmed
from tests.services.coordinator.fake_ports import RIG

SITES = tuple(f"plant-{number}" for number in range(7))
DIGESTS = {site: f"{number:064x}" for number, site in enumerate(SITES, 1)}
NOW = datetime(2026, 1, 5, tzinfo=UTC)


def run_of(number: int, sites: tuple[str, ...] = SITES, radius: Mapping[str, float] | None = None, **plan: Any) -> Run:
    terms = tuple(
        SiteTermsRecord(site_id=site, weight=1 / len(sites), radius=(radius or {}).get(site, 0.1), n_samples=30)
        for site in sites
    )
    values = {"name": "p", "asset_type": "rig", "reveal": "each site"} | plan
    return Run(
        run_id=f"{number:032x}", plan=Plan.model_validate(values), status="running", created_at=NOW, updated_at=NOW,
        sites=terms, start=RunStart(contract=RIG.fingerprint),
    )


def training(run: Run) -> Training:
    server = OneVsRestServer(get_method(run.plan.method).server, 1)
    problem = server_problem(run, RIG)
    problem = cohort_problem(problem, cohorts_of(run)) if run.plan.reveal == "sums" else problem
    return Training(run, server, problem, server.init(problem), RIG)


def ended(run: Run, digests: Mapping[str, str] = DIGESTS) -> Earlier:
    """A run that had one exchange, in which every site, or cohort, told a cut."""
    at = training(run)
    shapes = at.shapes
    answers = {
        site.site_id: {name: np.full(shape, 0.5) for name, shape in shapes.items()} for site in at.problem.sites
    }
    head = at.state[0]
    point = np.zeros(at.problem.dimension)
    first = (0, 0) if run.plan.method == "cohort-bundle" else (0,)
    single = {site: {name: array[first] for name, array in answer.items()} for site, answer in answers.items()}
    state = (replace(head, evidence=with_answers(head.evidence, at.problem, point, single)),)
    return Earlier(run, digests, at.server.pack(state))


def taken_over(run: Run, earlier: Earlier, digests: Mapping[str, str] = DIGESTS) -> set[str]:
    """Sites, or cohorts, with a cut at the start of a run, as the coordinator begins it."""
    sites = run.sites
    start = run_start(run, sites, digests, RIG, earlier)
    run = run.model_copy(update={"start": start})
    at = warmed(training(run), digests, RIG, earlier) if start.after else training(run)
    evidence: Evidence = at.state[0].evidence
    assert (evidence.cut_round == EARLIER_RUN).all() and evidence.upper == np.inf and evidence.lower == 0.0
    return {at.problem.sites[int(place)].site_id for place in evidence.cut_site}


def test_the_same_plants_give_all_their_cuts_and_a_changed_one_none() -> None:
    before = ended(run_of(1))
    assert taken_over(run_of(2), before) == set(SITES)
    changed = DIGESTS | {"plant-3": "f" * 64}
    assert taken_over(run_of(2), before, changed) == set(SITES) - {"plant-3"}
    untold = DIGESTS | {"plant-3": ""}
    assert taken_over(run_of(2), ended(run_of(1), untold), untold) == set(SITES) - {"plant-3"}
    assert taken_over(run_of(2, SITES[1:]), before) == set(SITES[1:]), "one left: the others' cuts hold"


@pytest.mark.parametrize("changes", [
    {"method": "level-bundle-plain"}, {"spec": {"transport_norm": "l1"}}, {"spec": {"fit_intercept": False}},
    {"spec": {"loss": "smooth_hinge"}}, {"spec": {"support": "sensor_ranges"}}, {"spec": {"label_flip_cost": 3.0}},
    {"spec": {"lift": {"kind": "spline", "segments": 2}}}, {"warm_start": False}, {"parameters": {"level": 0.45}},
])
def test_another_problem_takes_over_nothing(changes: dict[str, Any]) -> None:
    assert taken_over(run_of(2, **changes), ended(run_of(1))) == set()


def test_another_radius_or_flip_cost_of_one_plant_drops_its_cuts() -> None:
    before = ended(run_of(1))
    assert taken_over(run_of(2, radius={"plant-2": 0.11}), before) == set(SITES) - {"plant-2"}
    own = {"site_settings": {"plant-5": {"label_flip_cost": 2.0}}}
    assert taken_over(run_of(2, **own), before) == set(SITES) - {"plant-5"}


def test_another_contract_takes_over_nothing() -> None:
    before = ended(run_of(1).model_copy(update={"start": RunStart(contract="0" * 64)}))
    assert taken_over(run_of(2), before) == set()


def test_who_was_left_out_of_the_run_before_has_no_cuts_in_the_next_one() -> None:
    """Its terms stand with that run all the same, and it may say the same digest again."""
    first = run_of(1)
    lied = ExcludedSite(site_id="plant-2", round=1, code="contradiction", reason="it lied")
    before = ended(first.model_copy(update={"excluded": (lied,)}))
    assert taken_over(run_of(2), before) == set(SITES) - {"plant-2"}


SUMS = {"reveal": "sums", "method": "cohort-bundle"}


def test_what_plants_told_by_themselves_is_of_no_cohort() -> None:
    single, summed = run_of(1, method="level-bundle-plain"), run_of(2, method="level-bundle-plain", reveal="sums")
    assert run_start(summed, summed.sites, DIGESTS, RIG, ended(single)).after is None
    assert run_start(single, single.sites, DIGESTS, RIG, ended(summed)).after is None
    assert run_start(summed, summed.sites, DIGESTS, RIG, ended(summed)).after == summed.run_id


def test_on_sums_cohorts_stay_as_they_are_and_those_with_a_change_are_dealt_anew() -> None:
    first = run_of(1, **SUMS)
    before = ended(first)
    assert taken_over(run_of(2, **SUMS), before) == set(cohorts_of(first))
    one = cohorts_of(first)["cohort-1"][0]
    run, digests = run_of(2, **SUMS), DIGESTS | {one: "f" * 64}
    assert taken_over(run, before, digests) == {"cohort-2"}
    start = run_start(run, run.sites, digests, RIG, before)
    again = {each.name: each.sites for each in start.cohorts}
    assert again["cohort-2"] == cohorts_of(first)["cohort-2"] and again["cohort-1"] == cohorts_of(first)["cohort-1"]
    weights = {"site_settings": {site: {"weight": 1 / 7} for site in SITES}}
    assert taken_over(run_of(2, **SUMS, **weights), before) == set(cohorts_of(first))


def test_a_share_in_a_cohort_that_changed_drops_the_cohort_alone() -> None:
    first = run_of(1, **SUMS)
    run, before = run_of(2, **SUMS), ended(first)
    inside, outside = cohorts_of(first)["cohort-1"][:2], cohorts_of(first)["cohort-2"][0]
    moved = {inside[0]: 0.03, inside[1]: -0.03, outside: 0.0}
    sites = tuple(
        site.model_copy(update={"weight": site.weight + moved.get(site.site_id, 0.0)}) for site in run.sites
    )
    assert taken_over(run.model_copy(update={"sites": sites}), before) == {"cohort-2"}


@pytest.mark.parametrize("changes", [
    {"method": "level-bundle-plain", "noise": {"epsilon": 10.0, "rounds": 4, "within": 6.0, "confidence": 0.9}},
    {"audit": "every round"},
])
def test_noise_and_an_audit_of_every_round_take_over_nothing(changes: dict[str, Any], tmp_path: Path) -> None:
    if "audit" in changes:
        changes = changes | {"auditor": new_seed_file(tmp_path / "auditor.nk")}
    plain = SUMS | {"method": changes.get("method", "cohort-bundle")}
    assert taken_over(run_of(2, **plain), ended(run_of(1, **plain)))
    assert taken_over(run_of(2, **(plain | changes)), ended(run_of(1, **plain))) == set()
    assert taken_over(run_of(2, **plain), ended(run_of(1, **(plain | changes)))) == set()
