"""Forgetting a plant that left: by one process at a time, whole after a kill, under a lease of its own."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from api.backend.wiring import open_backend
from api.models import service
from flows import retrain
from flows import unlearning as forgetting
from flows.publish import promote_if_gates_hold
from flows.wiring import FlowContext
from services.contracts.errors import BallastError
from services.contracts.history.run import STAYS, ExcludedSite, Run, SummedSites
from services.registry.labels import CHAMPION
from services.round_store.plants.leavings import Forgotten
from tests.api.conftest import a_version
from tests.flows.test_unlearning import (
    ADMIN,
    GONE,
    _promoted,
    findings,
    no_tables,
    places_with,
    rough,
    trained_without,
    unlearn,
)
from tests.flows.test_unlearning import works as works  # the plants and the model of those tests


def test_a_plant_stands_in_a_version_as_a_site_left_out_or_in_a_cohort() -> None:
    version = a_version("pumps", "a" * 32)
    out = ExcludedSite(site_id="plant-left-out", round=2, code="absent", reason="it was away")
    cohort = SummedSites(name="cohort-1", sites=("plant-in-a-sum", "plant-2", "plant-3"))
    told = version.model_copy(update={"excluded": (out,), "cohorts": (cohort,)})
    for site in (version.sites[0].site_id, "plant-left-out", "plant-in-a-sum"):
        assert forgetting.has_plant(told, site)
    assert not forgetting.has_plant(told, "cohort-1") and not forgetting.has_plant(version, "plant-in-a-sum")


def test_who_stood_still_until_another_had_the_lease_deletes_no_further_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other goes on with what is left, and writes the one entry that tells of it."""
    deleted, told = list[str](), list[object]()
    unit = SimpleNamespace(
        audit=SimpleNamespace(take_turn=lambda: None, append=lambda **entry: told.append(entry)),
        model_versions=SimpleNamespace(alias=lambda *_: None, mark_forgotten=lambda *_: None),
    )
    store = SimpleNamespace(
        atomic=lambda: nullcontext(unit), leavings=SimpleNamespace(take=lambda *_: len(deleted) < 2),
    )

    def forget(name: str, numbers: tuple[str, ...]) -> list[str]:
        deleted.extend(numbers)
        return []

    context: Any = SimpleNamespace(store=store, registry=SimpleNamespace(forget=forget))
    monkeypatch.setattr(forgetting, "versions_with", lambda *_: ("3", "2", "1"))
    run: Any = SimpleNamespace(
        run_id="0" * 32, status="completed", plan=SimpleNamespace(name="pumps"),
        leaving=SimpleNamespace(site_id="plant-1", at_once=False),
    )
    assert forgetting.forget(context, run, lambda *_: len(told), "owner") is None
    assert deleted == ["3", "2"] and told == []


def test_what_could_not_be_deleted_is_told_of_each_version(monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, Any] = {}
    unit = SimpleNamespace(
        audit=SimpleNamespace(take_turn=lambda: None, append=lambda **entry: told.update(entry)),
        model_versions=SimpleNamespace(alias=lambda *_: None, mark_forgotten=lambda *_: None),
        leavings=SimpleNamespace(forget=lambda *_: Forgotten(deleted={"rounds": 7}, pseudonymised={}, other_models=())),
    )
    store = SimpleNamespace(atomic=lambda: nullcontext(unit), leavings=SimpleNamespace(take=lambda *_: True))
    registry = SimpleNamespace(forget=lambda _, numbers: tuple(f"files of version {number}" for number in numbers))
    monkeypatch.setattr(forgetting, "versions_with", lambda *_: ("2", "1"))
    monkeypatch.setattr(forgetting, "_untold", lambda *_: ("2", "1"))
    run: Any = SimpleNamespace(
        run_id="0" * 32, status="completed", plan=SimpleNamespace(name="pumps"),
        leaving=SimpleNamespace(site_id="plant-1", at_once=False),
    )
    context: Any = SimpleNamespace(store=store, registry=registry)
    assert forgetting.forget(context, run, lambda *_: 3, "owner") is not None
    after = told["after"]
    assert after["left"] == ["files of version 2", "files of version 1", STAYS]
    assert after["versions_deleted"] == ["2", "1"] and after["deleted"] == {"rounds": 7, forgetting.TABLES: 3}


@pytest.mark.parametrize("place", ["files", "run", "version"])
def test_who_is_killed_while_a_version_is_deleted_goes_on_and_tells_it(
    works: Any, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    first, _, version = works.train(works.plan("halfway"))
    promote_if_gates_hold(works.context, first, version)
    trained_without(works, unlearn(works, "halfway", purge="now")[1])
    store = works.context.registry._store
    target, call = {
        "files": (store, "_purged"), "run": (store.client, "delete_model_version"), "version": (type(store), "forget"),
    }[place]
    done = getattr(target, call)

    def killed(*given: Any) -> None:
        if place == "version":  # just after it
            done(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(target, call, killed)
        with pytest.raises(KeyboardInterrupt):
            forgetting.forget_those_due(works.context, no_tables)
    forgetting.forget_those_due(works.context, no_tables)
    assert places_with(works, GONE) == {"audit_events"} and works.context.store.leavings.due() == []
    (entry,) = works.context.store.audit.list_events(action="model.unlearned")
    assert entry.after["versions_deleted"] == [version.version]
    trained_without(works, works.context.store.runs.create_run(works.context.store.plans.get("halfway").plan))


def test_of_two_that_look_at_the_same_moment_one_forgets(works: Any) -> None:
    first, _, version = works.train(works.plan("twice"))
    promote_if_gates_hold(works.context, first, version)
    trained_without(works, unlearn(works, "twice", purge="now")[1])
    looked: list[int] = []

    def tables(plan: str, site: str) -> int:
        looked.append(len(works.context.store.leavings.due()))
        if len(looked) == 1:  # another process, while this one is at it
            forgetting.forget_those_due(works.context, tables)
        return 0

    forgetting.forget_those_due(works.context, tables)
    assert looked == [1]
    (entry,) = works.context.store.audit.list_events(action="model.unlearned")
    assert entry.after["versions_deleted"] == [version.version]


def test_a_run_that_ended_is_not_another_process_s_while_a_plant_is_forgotten_at_length(
    works: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, beaten = works.context.store, threading.Event()
    run = store.runs.create_run(works.plan("at-length"))
    settings = works.context.settings.model_copy(update={"lease_seconds": 1.0})
    monkeypatch.setattr(retrain, "get_run_logger", lambda: logging.getLogger("ballast.flows"))
    monkeypatch.setattr(retrain, "open_context", lambda: nullcontext(replace(works.context, settings=settings)))

    async def named(*_: object) -> None: ...

    async def drive(context: FlowContext, driven: Run) -> dict[str, Any]:
        context.store.runs.finish_run(driven.run_id, "completed", "done")
        return {"run_id": driven.run_id}

    def forget(context: FlowContext, _: object) -> None:
        lease = [each for each in threading.enumerate() if each.name.startswith("lease on")]
        beaten.wait(2.0 * settings.lease_seconds if lease else 0.0)  # as long as the lease would be looked after

    for name, stand_in in (("name_flow_run", named), ("drive", drive), ("forget_those_due", forget)):
        monkeypatch.setattr(retrain, name, stand_in)
    assert asyncio.run(retrain.retrain.fn("at-length", run.run_id)) == {"run_id": run.run_id}


@pytest.mark.parametrize("back", ["promote", "rollback"])
@pytest.mark.parametrize("when", ["looked", "marked"])
def test_an_operator_who_goes_back_to_a_version_with_the_plant_meanwhile_has_a_champion(
    works: Any, monkeypatch: pytest.MonkeyPatch, when: str, back: str
) -> None:
    """Before its versions are marked the plant waits again; after, they count as gone."""
    context, before, stays = works.context, *_two_champions(works, "raced")
    refused: list[str] = []

    def goes_back() -> None:
        with open_backend(context.settings) as other:
            try:
                if back == "promote":
                    service.promote(other, ADMIN, "raced", before, "as it was", ignore_gates=True)
                else:
                    service.rollback(other, ADMIN, "raced", "as it was")
            except BallastError as error:
                refused.append(error.code)

    target, call = (forgetting, "versions_with") if when == "looked" else (context.registry, "forget")
    done = getattr(target, call)

    def meanwhile(*given: Any) -> Any:
        found = done(*given) if when == "looked" else None
        goes_back()
        return found if when == "looked" else done(*given)

    with monkeypatch.context() as patch:
        patch.setattr(target, call, meanwhile)
        forgetting.forget_those_due(context, no_tables)
    champion = before if when == "looked" else stays
    assert len(refused) == (when == "marked") and len(context.store.leavings.due()) == (when == "looked")
    assert context.store.model_versions.alias("raced", CHAMPION).version == champion
    assert context.registry.get("raced", CHAMPION).version == champion
    assert [found.said for found in findings(works, "raced")] == ["agrees with the store"]


def _two_champions(works: Any, name: str) -> tuple[str, str]:
    """The version with the plant, and the one without it that is champion after it."""
    _, _, first = works.train(rough(works, name, auto_promote=False))
    _promoted(works, first)
    _, _, later = trained_without(works, unlearn(works, name)[1])
    _promoted(works, later)
    return first.version, later.version
