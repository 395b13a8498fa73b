"""A liar among plants on sums, from its first lie to a run without it: NATS, the store, the commands, an auditor."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.backend.actor import local_administrator
from api.backend.wiring import open_backend
from api.cli.main import main
from api.models.service import promote
from flows.publish import promote_if_gates_hold
from services.contracts.errors import ConflictError
from services.contracts.keys.signing import new_seed_file
from services.coordinator.run_state.run_errors import ContradictingAnswersError
from services.site_agent.settings import CsvSource
from tests.flows.conftest import RIG, policy, write_rows

PLANTS = ("plant-1", "plant-2", "plant-3", "plant-4")
LIAR = "plant-3"


@pytest.fixture(scope="module")
def works(tmp_path_factory: pytest.TempPathFactory, new_sqlite: Any, opening_works: Any) -> Iterator[Any]:
    base, sources = tmp_path_factory.mktemp("audited"), {}
    for number, site in enumerate(PLANTS):
        write_rows(base / f"{site}.csv", number, 48 + 12 * number)
        sources[site] = CsvSource(kind="csv", path=base / f"{site}.csv")
    with opening_works(base, new_sqlite(), RIG, sources) as opened:
        yield opened


def test_a_version_whose_every_round_is_audited_waits_for_the_verdict(
    works: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    auditor, store = new_seed_file(tmp_path / "auditor.nk"), works.context.store
    allowed = policy(RIG).model_copy(update={"auditors": (auditor,), "audit_every_round": True})
    for door in works.doors.values():
        monkeypatch.setattr(door._masks, "_policy", allowed)
    plan = works.plan(
        "watched", reveal="sums", method="cohort-bundle", gap=1e-2, sites=(), auditor=auditor, audit="every round",
        gates={"max_gap": 1e-2},
    )
    run, _, version = works.train(plan)
    monkeypatch.setenv("BALLAST_HOME", str(works.context.settings.home))
    monkeypatch.setenv("BALLAST_DATABASE_URL", works.context.settings.database)
    outcome = promote_if_gates_hold(works.context, run, version)
    assert "stays challenger: audit: the auditor's verdict on cohort-1 is due" in outcome
    with open_backend(works.context.settings) as backend:
        with pytest.raises(ConflictError, match="not promoted: audit: the auditor's verdict on cohort-1 is due"):
            promote(backend, local_administrator(), version.name, version.version, "a look")
        case, out = tmp_path / "case.json", tmp_path / "found"
        commands = (
            ("save", run.run_id, "cohort-1", case), ("audit", case, "--key", tmp_path / "auditor.nk", "--out", out),
            ("verdict", out / "verdict.json"),
        )
        for words in commands:
            assert main(["evidence", *map(str, words)]) == 0
        assert f"the audit of version {version.version} of model {version.name} is done" in capsys.readouterr().out
        promote(backend, local_administrator(), version.name, version.version, "audited")
    assert works.context.registry.aliases(version.name)["champion"] == version.version
    assert "verdict-cohort-1" in store.runs.get_cases(run.run_id)


def test_a_version_of_cuts_that_no_rows_have_stays_challenger(works: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the truth from the first round on contradicts nothing: bounds close, and a proof of them shows it."""
    compute = works.doors[LIAR]._compute

    def twice(task: Any) -> Any:
        found, exposure = compute(task)
        scaled = task.kind in ("round", "evaluate")
        return {name: 2.0 * each if scaled and each.dtype == float else each for name, each in found.items()}, exposure

    monkeypatch.setattr(works.doors[LIAR], "_compute", twice)
    plan = works.plan("twice", reveal="sums", method="cohort-bundle", gap=1e-2, sites=(), gates={"max_gap": 1e-2})
    run, _, version = works.train(plan)
    assert version.certified_gap <= 1e-2 and version.refuted
    said = f"stays challenger: max_gap: no rows have what plants told in its run: {version.refuted}"
    assert said in promote_if_gates_hold(works.context, run, version)
    assert works.context.registry.aliases(version.name).get("champion") != version.version


def test_a_liar_on_sums_is_found_by_the_auditor_suspended_and_missing_in_the_next_run(
    works: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    auditor = new_seed_file(tmp_path / "auditor.nk")
    for door in works.doors.values():
        door._masks._policy = policy(RIG).model_copy(update={"auditors": (auditor,)})
    liar = works.doors[LIAR]
    compute = liar._compute

    def low(task: Any) -> Any:
        found, exposure = compute(task)
        if task.kind == "round" and task.round > 4:
            found = {**found, "risk": 0.2 * found["risk"]}
        return found, exposure

    monkeypatch.setattr(liar, "_compute", low)
    plan = works.plan("audited", reveal="sums", method="cohort-bundle", gap=1e-6, sites=(), auditor=auditor)
    with pytest.raises(ContradictingAnswersError, match="4 of 4 plants opened both rounds to the auditor"):
        works.train(plan)
    run = works.context.store.runs.list_runs()[0]
    assert run.status == "failed" and f"ballast evidence save {run.run_id} cohort-1 FILE" in run.reason

    monkeypatch.setenv("BALLAST_HOME", str(works.context.settings.home))
    monkeypatch.setenv("BALLAST_DATABASE_URL", works.context.settings.database)
    case, out = tmp_path / "case.json", tmp_path / "found"

    def ballast(*words: object) -> str:
        capsys.readouterr()
        code = main(["evidence", *map(str, words)])
        said = capsys.readouterr()
        return f"{code} {said.out}{said.err}"

    assert "is for the auditor: `ballast evidence audit" in ballast("save", run.run_id, "cohort-1", case)
    assert f"contradiction: {LIAR}" in ballast("audit", case, "--key", tmp_path / "auditor.nk", "--out", out)
    assert ballast("save", run.run_id, "cohort-1", case).startswith("0 "), "the same again is no loss"
    assert ballast("audit", case, "--key", tmp_path / "auditor.nk", "--out", out).startswith("0 ")
    verdict = (out / "verdict.json").read_bytes()
    (tmp_path / "other.json").write_bytes(verdict)
    assert "1 ballast:" in (said := ballast("save", run.run_id, "cohort-1", tmp_path / "other.json"))
    assert "is there and holds something else: name another place" in said
    assert (tmp_path / "other.json").read_bytes() == verdict
    assert ballast("verify", out / f"{LIAR}.json").startswith("0 proven")
    forged = json.loads((out / "verdict.json").read_text())
    forged["findings"][0]["site"] = "plant-1"
    (tmp_path / "forged.json").write_text(json.dumps(forged))
    assert "1 ballast: the verdict is not signed by the auditor" in ballast("verdict", tmp_path / "forged.json")
    assert ballast("verdict", out / "verdict.json").startswith(f"0 site {LIAR} is suspended")
    store = works.context.store
    assert [site.site_id for site in store.sites.list_sites() if site.status != "active"] == [LIAR]
    ballast("verdict", out / "verdict.json")  # filed once more it is told no second time
    (told,) = [each for each in store.events.after(0, ["site.convicted"]) if each.run_id == run.run_id]
    assert (told.site_id, told.code, told.plan) == (LIAR, "verdict", "audited") and told.reason
    reason = store.runs.get_run(run.run_id).reason
    assert reason == f"the auditor of cohort-1 finds: {told.reason}; before the verdict: {run.reason}"
    entry = next(each for each in store.audit.list_events() if each.action == "site.suspend")
    assert entry.target == f"site:{LIAR}" and run.run_id in entry.reason and "contradicts itself" in entry.reason

    again = store.plans.update(plan.model_copy(update={"gap": 1e-3})).plan
    run, trained, _ = works.train(again, absent=(LIAR,))
    assert {site.site_id for site in run.members} == set(PLANTS) - {LIAR}
    assert trained.certificate.gap <= 0.05, "how near depends on the cuts that the plants draw"
    ledger = works.context.settings.home / "plants" / "plant-1" / "ledger.jsonl"
    opened = [line for line in map(json.loads, ledger.read_text().splitlines()) if line.get("kind") == "open"]
    assert opened[-1]["masking"] == {"message": "SealedOpenings", "auditor": auditor}
