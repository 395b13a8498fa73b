"""A plant leaves a model: a version that never had it, and nothing of it in store, registry and files but the audit."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from api.backend.actor import Actor
from api.backend.wiring import open_backend
from api.models import unlearning
from api.models.schemas import Unlearning
from api.system.doctor import of_registry
from api.system.finding import Finding
from flows import unlearning as forgetting
from flows.publish import promote_if_gates_hold
from services.contracts.access.identity import Role
from services.contracts.errors import ConflictError, NotFoundError, UnavailableError
from services.contracts.history.run import STAYS, Run
from services.contracts.plans.plan import Plan
from services.coordinator.run_state.terms import cohorts_of
from services.registry.labels import CHAMPION
from tests.flows.conftest import RIG, small_plants
from tests.flows.test_weekly import least_risk

PLANTS = ("east", "fermenter-seven", "north", "south", "west", "centre", "harbour")
GONE = "fermenter-seven"
ADMIN = Actor("ada", Role.ADMINISTRATOR)
FEW = PLANTS[:4]
MODES = {"each site": "level-bundle", "sums": "cohort-bundle"}


def no_tables(plan: str, site: str) -> int:
    """What Prefect's pages have of it, where there is no Prefect."""
    return 0


@pytest.fixture
def works(tmp_path: Path, new_sqlite: Any, opening_works: Any) -> Iterator[Any]:
    with opening_works(tmp_path, new_sqlite(), RIG, small_plants(tmp_path, FEW)) as opened:
        yield opened


@pytest.fixture
def cohorts(tmp_path: Path, new_sqlite: Any, opening_works: Any) -> Iterator[Any]:
    """As many plants as make two cohorts, with one of them and without."""
    with opening_works(tmp_path, new_sqlite(), RIG, small_plants(tmp_path, PLANTS)) as opened:
        yield opened


def rough(works: Any, name: str, **changes: Any) -> Plan:
    """A plan whose gap closes after some rounds: where versions come and go, not how good they are."""
    return works.plan(name, **{"gap": 0.1} | changes)


def unlearn(works: Any, model: str, purge: str = "promotion") -> tuple[Any, Run]:
    with open_backend(works.context.settings) as backend:
        answer = unlearning.unlearn(
            backend, ADMIN, model, Unlearning.model_validate({"site": GONE, "reason": "sold", "purge": purge})
        )
    return answer, works.context.store.runs.get_run(answer.run_id)


def trained_without(works: Any, run: Run) -> tuple[Run, Any, Any]:
    """The run, as the flow drives it, with its promotion."""
    ended, trained, version = asyncio.run(works._train_run(run, (GONE,)))
    promote_if_gates_hold(works.context, ended, version)
    return ended, trained, version


def findings(works: Any, model: str) -> list[Finding]:
    """What doctor says of a model's registry."""
    with open_backend(works.context.settings) as backend:
        return [found for found in of_registry(backend) if found.check == f"registry {model}"]


def places_with(works: Any, word: str) -> set[str]:
    """Tables of store and registry, and files of the registry, that have a word in them."""
    found, home = set(), works.context.settings.home
    for base in (works.context.store.engine.url.database.partition("?")[0].removeprefix("file:"), home / "mlflow.db"):
        with closing(sqlite3.connect(base)) as opened:
            for (table,) in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                for row in opened.execute(f"SELECT * FROM {table}"):
                    if any(word in (each.decode("latin-1") if isinstance(each, bytes) else str(each)) for each in row):
                        found.add(table)
    artifacts = home / "mlflow-artifacts"
    return found | {
        path.name for path in artifacts.rglob("*") if path.is_file() and word.encode() in path.read_bytes()
    }


@pytest.mark.parametrize("reveal", MODES)
def test_the_version_is_that_of_the_others_and_nothing_of_the_plant_stays(cohorts: Any, reveal: str) -> None:
    works = cohorts
    plan = works.plan("leaving", reveal=reveal, method=MODES[reveal], site_settings={GONE: {"label_flip_cost": 0.9}})
    first, _, version = works.train(plan)
    promote_if_gates_hold(works.context, first, version)
    assert {"runs", "metrics", "model.json"} <= places_with(works, GONE)
    answer, run = unlearn(works, "leaving")
    assert answer.versions == (version.version,) and answer.runs == (first.run_id,)
    assert GONE not in run.plan.sites and works.context.store.sites.get(GONE).status == "removed"
    assert works.context.store.leavings.due() == []
    ended, trained, later = trained_without(works, run)
    assert trained.rounds <= 5 and ended.start.after == first.run_id
    assert GONE not in {site.site_id for site in later.sites} and trained.certificate.gap <= plan.gap
    others = tuple(site for site in PLANTS if site != GONE)
    low, high = trained.certificate.lower, trained.certificate.upper
    assert low <= least_risk(works, others) <= high * (1 + 1e-9)
    if reveal == "sums":
        assert all(GONE not in members for members in cohorts_of(ended).values())
    forgetting.forget_those_due(works.context, no_tables)
    assert places_with(works, GONE) == {"audit_events"}
    assert works.context.store.leavings.due() == []
    with pytest.raises(NotFoundError):
        works.context.registry.get("leaving", version.version)
    assert works.context.registry.resolve("leaving", CHAMPION) == later.version
    assert works.context.store.runs.get_run(first.run_id).sites, "the run of before still reads"
    recorded = works.context.store.model_versions.list_versions("leaving", limit=9, with_forgotten=True)
    assert {each.version: each.status for each in recorded} == {
        version.version: "forgotten", later.version: "gates_passed"
    }
    assert [found.state for found in findings(works, "leaving")] == ["ok"], "nothing is to be restored"
    entry = works.context.store.audit.list_events(limit=1)[0]
    assert entry.action == "model.unlearned" and entry.after["versions_deleted"] == [version.version]
    assert entry.after["left"] == [STAYS]
    assert not works.context.store.leavings.take(ended.run_id, "another process that looked at the same moment", 60.0)
    assert len(works.context.store.audit.list_events(action="model.unlearned")) == 1
    _, again, _ = works.train(works.context.store.plans.get("leaving").plan, absent=(GONE,))
    assert again.rounds == 1, "the next week goes on from the version without it"


def test_a_plant_waits_to_be_forgotten_until_a_version_without_it_is_champion(works: Any) -> None:
    plan = rough(works, "waiting", auto_promote=False)
    first, _, version = works.train(plan)
    context = works.context
    _promoted(works, version)
    _, run = unlearn(works, "waiting")
    _, _, later = trained_without(works, run)
    forgetting.forget_those_due(context, no_tables)
    assert context.registry.resolve("waiting", CHAMPION) == version.version and len(context.store.leavings.due()) == 1
    _promoted(works, later)
    forgetting.forget_those_due(context, no_tables)
    assert places_with(works, GONE) == {"audit_events"}
    assert first.run_id not in context.store.leavings.due()


def test_who_is_killed_while_forgetting_goes_on_and_at_once_waits_for_nobody(
    works: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = rough(works, "killed", auto_promote=False)
    _, _, version = works.train(plan)
    _promoted(works, version)
    _, run = unlearn(works, "killed", purge="now")
    trained_without(works, run)

    def lost(*given: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(works.context.store.leavings), "forget", lost)
        with pytest.raises(KeyboardInterrupt):
            forgetting.forget_those_due(works.context, no_tables)
    assert len(works.context.store.leavings.due()) == 1 and "runs" in places_with(works, GONE)
    assert [found.said for found in findings(works, "killed")] == ["agrees with the store"]
    forgetting.forget_those_due(works.context, no_tables)
    assert places_with(works, GONE) == {"audit_events"}
    assert works.context.store.model_versions.forgotten({"killed"}) == {("killed", version.version)}
    with pytest.raises(NotFoundError):
        works.context.registry.resolve("killed", CHAMPION)


def test_tables_in_prefects_pages_go_too_and_it_stays_due_until_they_have(works: Any) -> None:
    first, _, version = works.train(rough(works, "shown"))
    promote_if_gates_hold(works.context, first, version)
    trained_without(works, unlearn(works, "shown", purge="now")[1])
    asked: list[tuple[str, str]] = []

    def tables(plan: str, site: str) -> int:
        asked.append((plan, site))
        if len(asked) == 1:
            raise UnavailableError("Prefect does not answer")
        return 2

    forgetting.forget_those_due(works.context, tables)
    assert len(works.context.store.leavings.due()) == 1 and "runs" in places_with(works, GONE)
    forgetting.forget_those_due(works.context, tables)
    assert asked == [("shown", GONE)] * 2 and places_with(works, GONE) == {"audit_events"}
    entry = works.context.store.audit.list_events(limit=1)[0]
    assert entry.action == "model.unlearned" and entry.after["deleted"][forgetting.TABLES] == 2


@pytest.mark.parametrize("purge", ["promotion", "now"])
def test_a_plant_whose_run_failed_is_forgotten_after_a_later_one_without_it(works: Any, purge: str) -> None:
    plan = rough(works, "failing", auto_promote=False)
    _, _, version = works.train(plan)
    context, store = works.context, works.context.store
    _promoted(works, version)
    _, run = unlearn(works, "failing", purge)
    store.runs.finish_run(run.run_id, "failed", "2 sites take part, and a sum over fewer than 3 hides too little")
    forgetting.forget_those_due(context, no_tables)
    assert context.registry.resolve("failing", CHAMPION) == version.version and "runs" in places_with(works, GONE)
    _, _, later = works.train(store.plans.get("failing").plan, absent=(GONE,))
    _promoted(works, later)
    store.sites.enrol(GONE, store.sites.get(GONE).public_key, [plan.asset_type])
    forgetting.forget_those_due(context, no_tables)
    assert context.registry.get("failing", version.version).version, "a plant that is back is not forgotten"
    store.sites.remove(GONE)
    forgetting.forget_those_due(context, no_tables)
    assert places_with(works, GONE) == {"audit_events"} and store.leavings.due() == []


def test_of_an_archived_plan_all_versions_with_the_plant_go_at_once_and_none_is_trained(works: Any) -> None:
    """Also where the plant was the plan's only one: nothing is left to train, and it is forgotten all the same."""
    store, name = works.context.store, "put-away"
    plan = rough(works, name, sites=(GONE,), min_sites=1)
    first, _, version = works.train(plan, absent=FEW[:1] + FEW[2:])
    promote_if_gates_hold(works.context, first, version)
    with pytest.raises(ConflictError, match="alone, so that nothing is left to train: archive it"):
        unlearn(works, name, purge="now")
    store.plans.set_archived(name, True)
    with pytest.raises(ConflictError, match="put-away is archived.*restore it first.*--purge now") as refused:
        unlearn(works, name)
    assert refused.value.code == "plan_archived"
    assert store.sites.get(GONE).status == "active" and not store.runs.unfinished_runs(name)
    answer, run = unlearn(works, name, purge="now")
    assert answer.versions == (version.version,) and store.runs.get_run(run.run_id).status == "failed"
    forgetting.forget_those_due(works.context, no_tables)
    assert places_with(works, GONE) == {"audit_events"} and store.leavings.due() == []
    assert store.plans.set_archived(name, False).plan.sites[0].startswith("left-")


def test_who_never_took_part_cannot_leave(works: Any) -> None:
    works.train(rough(works, "others", sites=tuple(site for site in FEW if site != GONE)))
    with pytest.raises(NotFoundError, match="no run of plan others had the site"):
        unlearn(works, "others")


def _promoted(works: Any, version: Any) -> None:
    with works.context.store.atomic() as unit:
        unit.model_versions.record_alias(version.name, CHAMPION, version.version, "ada", "a test")
        works.context.registry.promote(version.name, version.version)
