"""Runs on masked sums through a real NATS server: every method that can, its version, what the plants wrote down."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from api.cli.commands.model import _scores
from models.evaluation.scores import f1_score
from models.methods.catalogue import METHODS
from models.problem import Status
from services.contracts.history.plan_notices import plan_notices
from services.contracts.plans.gates import Gates
from services.coordinator.asking import nats_transport
from services.coordinator.run_state.run_errors import TooFewSitesError
from services.registry.gates import check_gates, failed_gates
from services.reporting.report_page import report_page
from services.site_agent.door.masked_runs import MaskedRuns
from services.verification.certificate_file import read_certificate

SUMMED = sorted(name for name, each in METHODS.items() if each.on_sums)
SLOW = {"fdr-sm", "fedsgd", "fedavg", "fedprox", "scaffold"}


@pytest.mark.parametrize("method", SUMMED)
def test_every_method_that_works_on_sums_does_so_through_the_service(unasked_works: Any, method: str) -> None:
    loss = {"loss": "smooth_hinge"} if METHODS[method].needs_smooth_loss else {}
    rounds = 30 if method == "cohort-bundle" else 8
    plan = unasked_works.plan(f"sums-{method}", method=method, reveal="sums", max_rounds=rounds, spec=loss)
    run, trained, version = unasked_works.train(plan, registered=method == "cohort-bundle")
    assert (version.reveal, [each.sites for each in version.cohorts]) == ("sums", [tuple(sorted(unasked_works.doors))])
    assert run.excluded == () and trained.rounds <= rounds
    assert version.f1 is not None and version.f1 > (0.5 if method in SLOW else 0.85)
    assert all(site.f1 is None and site.worst_case_risk is None for site in version.sites), "no policy releases them"
    assert version.confusion is not None and f1_score(np.array(version.confusion, float)) == pytest.approx(version.f1)
    assert version.worst_case_risk is not None and np.isfinite(version.worst_case_risk)
    if method == "cohort-bundle":
        assert version.certified_gap <= 1e-3
    record = unasked_works.context.store.runs.get_rounds(run.run_id)[-1]
    assert [answer.status for answer in record.answers] == ["accepted"] * len(unasked_works.doors)


def test_the_ledger_names_the_plants_and_holds_no_array_of_the_rounds(works: Any) -> None:
    run, _, _ = works.train(works.plan("sums-ledger", reveal="sums", max_rounds=2), registered=False)
    ledger = works.context.settings.home / "plants" / "plant-1" / "ledger.jsonl"
    lines = [json.loads(line) for line in ledger.read_text().splitlines()]
    mine = [line for line in lines if line.get("run") == run.run_id]
    agreed = next(line for line in mine if line["kind"] == "agree")
    assert agreed["peers"] == {site: address.public_key for site, address in works.addresses.items()}
    masked = [line for line in mine if line["kind"] == "round"]
    assert masked and all(not line["fields"] and line["masking"]["words"] > 10 for line in masked)
    assert {line["kind"] for line in mine} == {"join", "agree", "prepare", "round", "unmask", "evaluate"}
    assert all(line["bytes"] - 8 * line["masking"]["words"] < 150 for line in masked), "hardly more than the words"


def refused(works: Any, run_id: str) -> list[list[str]]:
    """Codes of the refusals of a run in the ledger of each plant."""
    ledgers = [works.context.settings.home / "plants" / site / "ledger.jsonl" for site in works.doors]
    lines = [[json.loads(line) for line in ledger.read_text().splitlines()] for ledger in ledgers]
    return [[line["code"] for line in each if line.get("run") == run_id and "code" in line] for each in lines]


@pytest.mark.parametrize("tuning", [None, "auto"])
def test_a_run_on_sums_leaves_no_refusal_in_a_ledger_where_nothing_is_wrong(works: Any, tuning: str | None) -> None:
    plan = works.plan(f"sums-quiet-{tuning or 'plain'}", reveal="sums", max_rounds=30, tuning=tuning)
    run, _, version = works.train(plan, registered=False)
    assert refused(works, run.run_id) == [[]] * len(works.doors)
    assert [site.own_scores for site in works.context.store.runs.get_run(run.run_id).sites] == [False] * len(run.sites)
    assert version.f1 is not None and version.worst_case_risk is not None and version.calibration.groups


def test_a_plant_that_tells_its_own_scores_is_asked_for_them(works: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    open_one = works.doors["plant-2"]
    monkeypatch.setattr(open_one, "_policy", open_one._policy.model_copy(update={"own_scores": True}))
    run, _, version = works.train(works.plan("sums-own", reveal="sums", max_rounds=5), registered=False)
    assert refused(works, run.run_id) == [[]] * len(works.doors)
    told = {site.site_id for site in version.sites if site.f1 is not None and site.worst_case_risk is not None}
    assert told == {"plant-2"}
    assert version.f1 is not None and version.confusion is not None


def test_gates_at_the_worst_plant_hold_on_sums_where_every_plant_tells_its_own_scores(
    works: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the README's plan at the README's plants; the same plan is noted no more once they have told them."""
    for door in works.doors.values():
        monkeypatch.setattr(door, "_policy", door._policy.model_copy(update={"own_scores": True}))
    gates = Gates(max_gap=1e-3, min_f1=0.85, min_site_f1=0.75)
    plan = works.plan("sums-gated", reveal="sums", max_rounds=40, gates=gates)
    run, _, version = works.train(plan, registered=False)
    assert failed_gates(check_gates(gates, version)) == ""
    assert len(plan_notices(plan)) == 1 and plan_notices(plan, run) == ()
    alone = [site.model_copy(update={"f1": None}) for site in version.sites]
    kept = failed_gates(check_gates(gates, version.model_copy(update={"sites": tuple(alone)})))
    assert kept.startswith("min_site_f1: no held-out score from plant-1")


def test_a_coordinator_of_before_gets_whole_frames_and_the_run_is_the_same(
    works: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nats_transport, "READS", "Something-Else")
    run, trained, version = works.train(works.plan("sums-before", reveal="sums", max_rounds=40), registered=False)
    assert trained.certificate.gap <= 1e-3 and run.excluded == ()
    assert [site.own_scores for site in run.sites] == [None] * len(run.sites), "it would not read that"
    assert refused(works, run.run_id) == [["mode_not_allowed"] * 2] * len(works.doors), "so it asks, as before"
    assert version.f1 is not None and version.worst_case_risk is not None
    ledger = works.context.settings.home / "plants" / "plant-1" / "ledger.jsonl"
    lines = [json.loads(line) for line in ledger.read_text().splitlines()]
    masked = [line for line in lines if line.get("run") == run.run_id and line["kind"] == "round"]
    assert masked and all(line["bytes"] - 10 * line["masking"]["words"] > 400 for line in masked), "in base 64"


def test_a_plant_without_masks_keeps_the_run_from_going_on_with_fewer_than_a_cohort(works: Any) -> None:
    plan = works.plan("sums-two", reveal="sums", max_rounds=5, absence_patience_seconds=0.0)
    with pytest.raises(TooFewSitesError, match="2 of the 3 sites that the plan needs answered to join"):
        works.train(plan, absent=("plant-2",))


def test_an_agent_that_restarts_between_rounds_is_agreed_with_anew(works: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    masks, seen = works.doors["plant-3"]._masks, []
    mask = MaskedRuns.mask

    def lost(self: MaskedRuns, *given: Any) -> Any:
        if self is masks and not seen:
            seen.append(1)
            self._runs.clear()
        return mask(self, *given)

    monkeypatch.setattr(MaskedRuns, "mask", lost)
    run, trained, _ = works.train(works.plan("sums-restart", reveal="sums", max_rounds=40), registered=False)
    assert seen and trained.certificate.gap <= 1e-3 and run.excluded == ()


def test_a_run_with_noise_leaves_a_version_that_says_what_it_promises(works: Any) -> None:
    noise = {"epsilon": 1000.0, "rounds": 4, "within": 6.0, "confidence": 0.999}
    spec = {"radius": {"rule": "fixed", "value": 0.05}}
    plan = works.plan("sums-noise", method="level-bundle-plain", reveal="sums", noise=noise, spec=spec)
    run, trained, version = works.train(plan)
    assert trained.status is Status.BUDGET_SPENT and trained.rounds == version.rounds == 4
    said = version.noise
    assert said is not None and said.epsilon == pytest.approx(1000.0) and (said.confidence, said.within) == (0.999, 6.0)
    context, name = works.context, version.name
    kept = context.registry.get(name, version.version)
    assert kept.noise == said and kept.certificate_sha256
    file = context.registry.certificate(kept)
    assert file is not None
    certificate = read_certificate(file)
    assert (certificate.confidence, certificate.within) == (0.999, 6.0)
    report = context.registry.report(kept)
    assert report is not None
    page = report_page(report)
    assert "epsilon 1000 at delta 1e-06 for a row, over 4 rounds" in page and "probability 0.999" in page
    shown = dict(_scores(version))
    assert (shown["noise epsilon"], shown["noise delta"], shown["noise confidence"]) == (said.epsilon, 1e-6, 0.999)
    ledger = context.settings.home / "plants" / "plant-1" / "ledger.jsonl"
    lines = [json.loads(line) for line in ledger.read_text().splitlines()]
    assert sum(line.get("run") == run.run_id and line["kind"] == "round" for line in lines) == 4
