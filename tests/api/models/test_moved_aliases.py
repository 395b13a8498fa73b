"""An alias that somebody moves in MLflow by hand serves nothing, is reported, and is put back."""

from __future__ import annotations

import logging
import threading
from functools import partial
from typing import Any

import pytest

from api.console.endpoints.models import model_page
from api.console.views.models import fairness, version_page
from api.models import exports, service
from flows.alias_watch import restore_aliases
from flows.wiring import FlowContext
from services.contracts.access.identity import Role
from services.registry.labels import CHALLENGER, CHAMPION, PREVIOUS
from services.registry.mlflow_registry import ModelRegistry
from tests.api.conftest import FOUNDER


def by_hand(world: Any) -> Any:
    """MLflow itself, as somebody would use it past Ballast."""
    from mlflow import MlflowClient

    uri = world.settings.tracking_uri
    return MlflowClient(tracking_uri=uri, registry_uri=uri)


def watch(world: Any) -> list[str]:
    context = FlowContext(world.settings, world.backend.store)
    return [each.alias for each in restore_aliases(context)]


def promoted(world: Any, name: str) -> tuple[str, str]:
    """Two versions, the first champion before the second; the third is challenger."""
    first, second, _ = world.new_model(name, 0.9, 0.95, 0.97)
    for version in (first, second):
        service.promote(world.backend, FOUNDER, name, version, "of the test")
    return first, second


def test_a_champion_moved_by_hand_is_reported_and_put_back(any_world: Any, request: pytest.FixtureRequest,
                                                           caplog: pytest.LogCaptureFixture) -> None:
    name = f"moved-{request.node.callspec.params['any_world']}"
    first, second = promoted(any_world, name)
    assert watch(any_world) == []
    by_hand(any_world).set_registered_model_alias(name, CHAMPION, first)
    assert "moved by hand; diagnoses go by the store" in notice(any_world)
    caplog.set_level(logging.WARNING, "ballast.flows")
    assert watch(any_world) == [CHAMPION]
    assert any_world.backend.registry.resolve(name, CHAMPION) == second
    said = f"the alias champion of model {name} was moved by hand to version {first}; the store says version {second}"
    assert said in caplog.text
    (event,) = any_world.backend.store.audit.list_events(action="registry.alias_restored")
    assert (event.target, event.reason) == (f"model:{name}", said)
    assert (event.before, event.after) == ({CHAMPION: first}, {CHAMPION: second})
    assert any_world.backend.store.audit.verify_chain().ok
    assert "was moved by hand and put back" in notice(any_world)
    assert watch(any_world) == []


def notice(world: Any) -> str:
    answer = world.call(None, "GET", "/readyz")
    assert answer.status_code == 200
    return str(answer.json()["notices"].get("registry"))


@pytest.mark.parametrize("alias", [CHAMPION, PREVIOUS, CHALLENGER])
def test_every_alias_is_put_back_moved_or_taken_away(world: Any, alias: str) -> None:
    name = f"each-{alias}"
    first, second = promoted(world, name)
    third = world.backend.registry.resolve(name, CHALLENGER)
    right = {CHAMPION: second, PREVIOUS: first, CHALLENGER: third}
    assert world.backend.registry.aliases(name) == right
    by_hand(world).set_registered_model_alias(name, alias, next(v for v in (first, second) if v != right[alias]))
    assert watch(world) == [alias]
    assert world.backend.registry.aliases(name) == right
    by_hand(world).delete_registered_model_alias(name, alias)
    assert watch(world) == [alias]
    assert world.backend.registry.aliases(name) == right


def test_a_diagnosis_is_made_by_the_champion_of_the_store(world: Any) -> None:
    first, second = promoted(world, "served")
    body = {"samples": [{feature.name: feature.low for feature in
                         world.backend.registry.get("served", second).asset_type.features}]}
    by_hand(world).set_registered_model_alias("served", CHAMPION, first)
    answer = world.call(Role.VIEWER, "POST", "/v1/models/served/diagnose", body)
    assert answer.json()["model_version"] == second
    by_hand(world).delete_registered_model_alias("served", CHAMPION)
    assert world.backend.predictors._source.resolve("served", CHAMPION) == second


def test_what_is_shown_and_handed_out_as_champion_is_the_stores_too(world: Any) -> None:
    """An export goes into a machine, where nobody puts an alias back."""
    first, second = promoted(world, "shown")
    aliases = by_hand(world)
    for move in (
        partial(aliases.set_registered_model_alias, "shown", CHAMPION, first),
        partial(aliases.delete_registered_model_alias, "shown", CHAMPION),
    ):
        move()
        detail = world.call(Role.VIEWER, "GET", f"/v1/models/shown/versions/{CHAMPION}")
        assert (detail.status_code, detail.json()["version"]) == (200, second)
        assert version_page(world.backend, "shown", CHAMPION, newest=9, real=True).version.version == second
        page = model_page("shown", FOUNDER, world.backend)
        assert page.headers["location"] == f"/console/models/shown/versions/{second}"
        assert fairness(world.backend, "shown", first, real=True).report.champion_version == second
        exports.export(world.backend, FOUNDER, "shown", CHAMPION, "c99", "double")
        exported = world.backend.store.audit.list_events(action="model.export")[0]
        assert exported.after is not None and exported.after["version"] == second


def test_a_version_that_is_being_registered_is_left_alone(world: Any) -> None:
    promoted(world, "growing")
    made = world.backend.registry.get("growing", CHAMPION).model_copy(update={"run_id": "cd" * 16, "version": ""})
    registered = world.backend.registry.register(made, [], {"text": "no report"})
    assert watch(world) == []
    assert world.backend.registry.resolve("growing", CHALLENGER) == registered.version


def test_a_rollback_is_no_move(world: Any) -> None:
    first, _ = promoted(world, "rolled")
    service.rollback(world.backend, FOUNDER, "rolled", "of the test")
    assert watch(world) == []
    assert world.backend.registry.aliases("rolled")[CHAMPION] == first
    assert PREVIOUS not in world.backend.registry.aliases("rolled")


def test_a_promotion_on_its_way_is_not_undone(
    any_world: Any, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the registry's write and the store's commit the two differ; the watch waits for the commit."""
    name = f"on-its-way-{request.node.callspec.params['any_world']}"
    first, _ = promoted(any_world, name)
    moved, looked = threading.Event(), threading.Event()
    promote = ModelRegistry.rollback

    def slowly(*args: Any, **more: Any) -> Any:
        done = promote(*args, **more)
        moved.set()
        looked.wait(1.0)
        return done

    monkeypatch.setattr(ModelRegistry, "rollback", slowly)
    change = threading.Thread(target=service.rollback, args=(any_world.backend, FOUNDER, name, "of the test"))
    change.start()
    assert moved.wait(60)
    assert watch(any_world) == []
    looked.set()
    change.join()
    assert any_world.backend.registry.resolve(name, CHAMPION) == first


def test_a_version_that_was_forgotten_is_no_challenger(world: Any) -> None:
    _, second = promoted(world, "forgotten")
    third = world.backend.registry.resolve("forgotten", CHALLENGER)
    world.backend.store.model_versions.mark_forgotten("forgotten", (third,), "a plant left")
    world.backend.registry.forget("forgotten", (third,))
    assert watch(world) == [CHALLENGER] and watch(world) == []
    assert world.backend.registry.resolve("forgotten", CHALLENGER) == second, "the newest that is there"
