from __future__ import annotations

from typing import Any

import pytest

from api.models import service
from services.auditing.standing import audit_gate
from services.contracts.access.identity import Role
from services.contracts.errors import UnavailableError
from tests.aliases import alias_history


def promote(world: Any, name: str, **body: Any) -> Any:
    return world.call(Role.OPERATOR, "POST", f"/v1/admin/models/{name}/promote", {"reason": "tested on line 4"} | body)


def rollback(world: Any, name: str, **body: Any) -> Any:
    return world.call(Role.OPERATOR, "POST", f"/v1/admin/models/{name}/rollback", {"reason": "false alarms"} | body)


def champion(world: Any, name: str) -> str | None:
    answer = world.call(Role.VIEWER, "GET", f"/v1/models/{name}").json()
    return answer["champion"]


def test_versions_are_promoted_and_rolled_back_with_a_reason(any_world: Any, request: pytest.FixtureRequest) -> None:
    name = f"line-{request.node.callspec.params['any_world']}"
    first, second = any_world.new_model(name, 0.9, 0.95)
    assert promote(any_world, name, version=first).json() == {
        "model": name, "version": first, "previous_version": None, "reason": "tested on line 4",
        "actor": any_world.backend.store.audit.list_events()[0].actor,
    }
    assert promote(any_world, name).json()["version"] == second  # the challenger
    assert champion(any_world, name) == second
    back = rollback(any_world, name)
    assert (back.status_code, back.json()["version"], back.json()["previous_version"]) == (200, first, second)
    assert champion(any_world, name) == first
    assert any_world.events() == ["model.rollback", "model.promote", "model.promote"]
    event = any_world.backend.store.audit.list_events(target=f"model:{name}")[0]
    assert (event.before, event.after, event.reason) == ({"champion": second}, {"champion": first}, "false alarms")
    changes = [each for each in alias_history(any_world.backend.store, name) if each.alias == "champion"]
    assert [(change.previous_version, change.version) for change in changes] == [
        (second, first), (first, second), (None, first),
    ]
    assert any_world.backend.store.audit.verify_chain().ok


def test_what_cannot_be_promoted_changes_nothing(world: Any) -> None:
    good, weak = world.new_model("gated", 0.9, 0.5)
    assert promote(world, "gated", version=good).status_code == 200
    before, events = world.snapshot(), world.events()
    refused = {
        "gate": (promote(world, "gated", version=weak), 409, "min_site_f1"),
        "champion already": (promote(world, "gated", version="champion"), 409, "champion already"),
        "no such version": (promote(world, "gated", version="77"), 404, "77"),
        "no such model": (promote(world, "nobody"), 404, "nobody"),
        "no reason": (promote(world, "gated", version=weak, reason="  "), 422, "body.reason"),
        "no champion before": (rollback(world, "gated"), 409, "no champion before"),
        "rollback of no model": (rollback(world, "nobody"), 404, "nobody"),
        "rollback without a reason": (rollback(world, "gated", reason=""), 422, "body.reason"),
    }
    for case, (answer, status, said) in refused.items():
        assert answer.status_code == status, (case, answer.text)
        assert said in answer.json()["detail"], case
    assert champion(world, "gated") == good
    assert (world.snapshot(), world.events()) == (before, events)


def test_gates_can_be_set_aside_and_the_trail_says_so(world: Any) -> None:
    _, weak = world.new_model("aside", 0.9, 0.5)
    assert promote(world, "aside", version=weak, ignore_gates=True).status_code == 200
    assert champion(world, "aside") == weak
    event = world.backend.store.audit.list_events(action="model.promote")[0]
    assert event.after == {"champion": weak, "ignore_gates": True}


def test_a_version_without_its_run_is_promoted_only_when_gates_are_set_aside(world: Any) -> None:
    from sqlalchemy import text

    (only,) = world.new_model("orphan", 0.9)
    with world.backend.store.engine.execution_options(ballast_writes=True).begin() as connection:
        for table in ("run_state_parts", "run_states", "site_updates", "rounds", "model_versions", "runs"):
            connection.execute(text(f"DELETE FROM {table}"))
    assert promote(world, "orphan", version=only).status_code == 409
    assert promote(world, "orphan", version=only, ignore_gates=True).status_code == 200
    assert champion(world, "orphan") == only
    assert world.events() == ["model.promote"]
    store = world.backend.store
    assert store.model_versions.alias("orphan", "champion") is None, "nothing to take back in the alias's history"
    told = [event for event in store.events.after(0) if (event.kind, event.plan) == ("model.promoted", "orphan")]
    assert told == []


def test_a_champion_that_the_store_does_not_know_ends_the_one_before_it_in_the_alias_s_history(world: Any) -> None:
    from sqlalchemy import text

    known, other = world.new_model("half-known", 0.9, 0.95)
    promote(world, "half-known", version=known)
    with world.backend.store.engine.execution_options(ballast_writes=True).begin() as connection:
        connection.execute(text("DELETE FROM model_versions WHERE version = :other AND name = 'half-known'"),
                           {"other": other})
    assert promote(world, "half-known", version=other, ignore_gates=True).status_code == 200
    last = world.backend.store.model_versions.alias("half-known", "champion")
    assert (last.version, last.previous_version) == (None, known), "else it would be put back"
    assert champion(world, "half-known") == other


def test_a_registry_that_fails_leaves_no_trace_in_the_store(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = world.new_model("failing", 0.9, 0.95)
    promote(world, "failing", version=first)
    before = world.snapshot()

    def away(*_: Any, **__: Any) -> None:
        raise UnavailableError("the registry is away")

    registry = world.app.state.backend.registry
    for method in ("promote", "rollback"):
        monkeypatch.setattr(registry, method, away)
    for answer in (promote(world, "failing", version=second), rollback(world, "failing")):
        assert (answer.status_code, answer.json()["detail"]) == (503, "the registry is away")
        assert "Retry-After" in answer.headers
    assert world.snapshot() == before


def test_of_two_promotions_at_the_same_moment_the_later_follows_the_earlier_in_the_trail(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = world.new_model("both", 0.9, 0.93, 0.95)
    promote(world, "both", version=first)
    looked = audit_gate

    def meanwhile(*given: Any) -> Any:
        monkeypatch.setattr(service, "audit_gate", looked)
        assert promote(world, "both", version=second).status_code == 200
        return looked(*given)

    monkeypatch.setattr(service, "audit_gate", meanwhile)
    assert promote(world, "both", version=third).json()["previous_version"] == second
    last, before, _ = world.backend.store.audit.list_events(target="model:both")
    assert (last.before, before.before) == ({"champion": second}, {"champion": first})
