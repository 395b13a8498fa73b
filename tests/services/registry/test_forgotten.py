"""Versions that are deleted for good: nothing of them stays in MLflow, whenever who deletes them dies."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from services.contracts.errors import NotFoundError
from services.contracts.history.run import RoundRecord
from services.contracts.versions.model_version import ModelVersion
from services.registry.labels import CHALLENGER, CHAMPION, PREVIOUS
from services.registry.mlflow_registry import ModelRegistry

MakeVersion = Callable[..., ModelVersion]
MakeRounds = Callable[..., tuple[RoundRecord, ...]]
CALLS = (
    "get_run", "delete_registered_model_alias", "delete_logged_model", "delete_run", "delete_model_version_tag",
    "delete_model_version", "_hard_delete_logged_model", "_hard_delete_run",
)
OF_A_RUN = ("runs", "metrics", "latest_metrics", "params", "tags")
OF_A_MODEL = ("logged_models", "logged_model_params", "logged_model_metrics", "logged_model_tags")


class Killed(BaseException):
    """The process dies here."""


def rows(home: Path, run: str, model: str) -> dict[str, int]:
    """What MLflow's database has of a run and of a logged model, by table."""
    found = {}
    with closing(sqlite3.connect(next(home.glob("*.db")))) as opened:
        for tables, column, wanted in ((OF_A_RUN, "run_uuid", run), (OF_A_MODEL, "model_id", model)):
            for table in tables:
                (count,) = opened.execute(f"SELECT count(*) FROM {table} WHERE {column} = ?", (wanted,)).fetchone()
                found[table] = count
    return found


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("call", CALLS)
def test_who_dies_while_deleting_a_version_leaves_what_the_next_one_deletes(
    registry: ModelRegistry, registry_home: Path, make_version: MakeVersion, make_rounds: MakeRounds, name: str,
    call: str, before: bool, monkeypatch: pytest.MonkeyPatch,
) -> None:
    from mlflow.tracking._tracking_service.utils import _get_store

    made = make_version(name=name)
    version = registry.register(made, make_rounds(made.run_id), {}).version
    registry.promote(name, version)
    entry = registry._store.entry(name, version)
    model = entry.source.rstrip("/").split("/")[-2]
    assert {table for table, count in rows(registry_home, entry.run_id, model).items() if count} >= {
        "runs", "metrics", "logged_models", "logged_model_params"
    }
    target: Any = _get_store(registry._store._uri) if call.startswith("_") else registry._store.client
    done = getattr(target, call)

    def killed(*given: Any, **named: Any) -> None:
        if not before:
            done(*given, **named)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(target, call, killed)
        with pytest.raises(Killed):
            registry.forget(name, (version,))
    assert registry.forget(name, (version,)) == ()
    assert set(rows(registry_home, entry.run_id, model).values()) == {0}
    assert not [path for path in (registry_home / "artifacts").rglob("*") if path.is_file() and model in str(path)]
    with pytest.raises(NotFoundError):
        registry.get(name, version)


def test_a_promotion_and_a_rollback_pass_over_champions_that_were_deleted(
    registry: ModelRegistry, make_version: MakeVersion, make_rounds: MakeRounds, name: str
) -> None:
    numbers = []
    for _ in range(5):
        made = make_version(name=name)
        numbers.append(registry.register(made, make_rounds(made.run_id), {}).version)
    for number in numbers[:2]:
        registry.promote(name, number)
    registry.forget(name, numbers[:2])  # the champion too: a plant that it had was to be forgotten at once
    registry.promote(name, numbers[2])
    assert registry.aliases(name)[CHAMPION] == numbers[2] and PREVIOUS not in registry.aliases(name)
    for number in numbers[3:]:
        registry.promote(name, number)
    registry.forget(name, numbers[3:4])
    assert registry.rollback(name).version == numbers[2]
    assert registry.aliases(name)[CHAMPION] == numbers[2] and PREVIOUS not in registry.aliases(name)


def test_a_version_that_is_being_deleted_becomes_champion_under_no_name(
    registry: ModelRegistry, make_version: MakeVersion, make_rounds: MakeRounds, name: str
) -> None:
    first, second = (
        registry.register(each, make_rounds(each.run_id), {}).version
        for each in (make_version(name=name), make_version(name=name))
    )
    registry.promote(name, first)
    for called in (second, CHALLENGER):
        with pytest.raises(NotFoundError, match=f"version {second} of model {name} is deleted with a plant that left"):
            registry.promote(name, called, without=(second,))
    assert registry.resolve(name, CHAMPION) == first and registry.promote(name, CHALLENGER).version == second
