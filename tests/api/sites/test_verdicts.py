"""What follows from a verdict: of whatever cohort it is, filed once more, and with plants that left meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from api.backend.actor import local_administrator
from api.sites import verdicts
from services.contracts.errors import InvalidInputError
from services.verification.proof import NotProvenError
from tests.api.conftest import SITES, a_plan

VERDICT = b"a verdict on cohort-2"


@pytest.fixture
def run_id(world: Any, monkeypatch: pytest.MonkeyPatch, new_key: Callable[[], str]) -> str:
    """A run with two cohorts that were opened; what files say, and who signed them, is for ``services/auditing``."""
    runs, key = world.backend.store.runs, new_key()
    run = runs.create_run(a_plan("audited", reveal="sums", method="cohort-bundle", auditor=key))
    runs.begin_run(run.run_id, ())
    for name in ("cohort-1", "cohort-2"):
        runs.keep_case(run.run_id, name, f"case of {name}".encode())
    runs.finish_run(run.run_id, "failed", "some plant lied")

    def read(data: bytes, auditor: str, cohort: str) -> Any:
        if auditor != key or not data.endswith(cohort.encode()):
            raise NotProvenError("the verdict is of another run or cohort")
        found = [SimpleNamespace(site=site, text=f"{site} contradicts itself") for site in SITES]
        return SimpleNamespace(convicted={each.site: each.text for each in found}, findings=found)

    monkeypatch.setattr(verdicts, "run_of_verdict", lambda _: run.run_id)
    monkeypatch.setattr(verdicts, "is_case", lambda data: data.startswith(b"case"))
    monkeypatch.setattr(verdicts, "read_case", lambda data: SimpleNamespace(cohort=data.decode().split()[-1]))
    monkeypatch.setattr(verdicts, "read_verdict", read)
    monkeypatch.setattr(verdicts, "_version_lines", lambda *_: [])
    return str(run.run_id)


def filed(world: Any, data: bytes = VERDICT) -> list[str]:
    return verdicts.file_verdict(world.backend, local_administrator(), data)


def convicted(world: Any) -> list[str | None]:
    return [each.site_id for each in world.backend.store.events.after(0, ["site.convicted"])]


def test_a_verdict_on_the_second_cohort_is_kept_beside_its_case_and_told_once(world: Any, run_id: str) -> None:
    before = convicted(world)
    for _ in range(2):
        said = filed(world)
        assert [line.startswith(f"site {site} is suspended") for line, site in zip(said, SITES, strict=True)] == [
            True, True]
    kept = world.backend.store.runs.get_cases(run_id)
    assert set(kept) == {"cohort-1", "cohort-2", "verdict-cohort-2"} and kept["verdict-cohort-2"] == VERDICT
    assert convicted(world)[len(before) :] == list(SITES), "filed once more it tells nothing new"
    assert world.events() == ["site.suspend"] * len(SITES)
    assert {each.status for each in world.backend.store.sites.list_sites() if each.site_id in SITES} == {"suspended"}
    told = "; ".join(f"{site} contradicts itself" for site in SITES)
    reason = world.backend.store.runs.get_run(run_id).reason
    assert reason == f"the auditor of cohort-2 finds: {told}; before the verdict: some plant lied"


def test_a_later_verdict_on_the_same_cohort_takes_the_place_of_the_first(world: Any, run_id: str) -> None:
    before, later = convicted(world), b"with what another plant showed since, a verdict on cohort-2"
    for data in (VERDICT, later):
        filed(world, data)
    assert world.backend.store.runs.get_cases(run_id)["verdict-cohort-2"] == later
    assert convicted(world)[len(before) :] == [*SITES, *SITES]


@pytest.mark.parametrize(("text", "told"), [
    ("plant-1 contradicts itself", "plant-1 contradicts itself"), (None, "no plant lied"),
    ("its answer is a copy", "plant-1: its answer is a copy"),
])
def test_each_finding_names_its_plant_once(text: str | None, told: str) -> None:
    verdict: Any = SimpleNamespace(findings=[] if text is None else [SimpleNamespace(site="plant-1", text=text)])
    assert verdicts._found("cohort-1", verdict) == f"the auditor of cohort-1 finds: {told}"


def test_a_plant_that_left_meanwhile_keeps_no_other_from_being_suspended(world: Any, run_id: str) -> None:
    sites = world.backend.store.sites
    sites.remove(SITES[0])
    gone, there = filed(world)
    assert gone == f"site {SITES[0]} is enrolled no more: {SITES[0]} contradicts itself"
    assert there.startswith(f"site {SITES[1]} is suspended")
    assert (sites.get(SITES[0]).status, sites.get(SITES[1]).status) == ("removed", "suspended")


def test_what_is_of_no_opened_cohort_or_of_no_auditor_suspends_nobody(
    world: Any, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = convicted(world)
    with pytest.raises(NotProvenError, match="another run or cohort"):
        filed(world, b"a verdict on cohort-3")
    unaudited = world.backend.store.runs.list_runs(plan="pumps")[0].run_id
    monkeypatch.setattr(verdicts, "run_of_verdict", lambda _: unaudited)
    with pytest.raises(InvalidInputError, match="names no auditor"):
        filed(world)
    assert (convicted(world), world.events()) == (before, [])


def test_a_case_that_went_with_a_plant_that_was_unlearned_is_not_said_never_to_have_been(
    world: Any, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = world.backend.store.runs.get_run(run_id).plan.model_copy(update={"name": "forgotten"})
    gone = world.backend.store.runs.create_run(plan).run_id
    monkeypatch.setattr(verdicts, "run_of_verdict", lambda _: gone)
    with pytest.raises(NotProvenError, match="none was, or a plant of it was unlearned since, and its case deleted"):
        filed(world)
    assert world.events() == []
