"""The registry's versions, held to the store: what is said where one of the two does not know, or does not answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from api.backend.checked_source import CheckedSource, check_recorded
from services.contracts.errors import BallastError, ConflictError, NotFoundError, UnavailableError
from services.registry.labels import CHAMPION


def a_source(champion: str | None, aliases: dict[str, str]) -> CheckedSource:
    def resolve(name: str, alias: str) -> str:
        if alias not in aliases:
            raise NotFoundError(f"no model {name} with alias {alias}")
        return aliases[alias]

    change = None if champion is None else SimpleNamespace(version=champion)
    store: Any = SimpleNamespace(model_versions=SimpleNamespace(alias=lambda *_: change))
    registry: Any = SimpleNamespace(resolve=resolve)
    return CheckedSource(store, registry)


@pytest.mark.parametrize(("champion", "aliases", "found"), [
    ("2", {CHAMPION: "2"}, "2"), ("2", {CHAMPION: "1"}, "2"), ("2", {}, "2"), (None, {CHAMPION: "1"}, "1"),
])
def test_the_champion_is_the_stores_where_it_has_one(
    champion: str | None, aliases: dict[str, str], found: str
) -> None:
    assert a_source(champion, aliases).resolve("pump", CHAMPION) == found


def test_a_model_that_nobody_promoted_has_no_champion() -> None:
    with pytest.raises(NotFoundError, match="no model pump with alias champion"):
        a_source(None, {}).resolve("pump", CHAMPION)
    with pytest.raises(NotFoundError, match="alias challenger"):
        a_source("2", {CHAMPION: "2"}).resolve("pump", "challenger")


@pytest.mark.parametrize("said", [NotFoundError("no such version"), UnavailableError("the database is away")])
def test_a_store_that_does_not_know_a_version_or_does_not_answer_says_nothing_of_it(said: BallastError) -> None:
    def get(*_: str) -> Any:
        raise said

    version: Any = SimpleNamespace(name="pump", version="1", run_id="a")
    check_recorded(SimpleNamespace(model_versions=SimpleNamespace(get=get)), version)  # type: ignore[arg-type]
    record = SimpleNamespace(run_id="b", signed_sha256=None)
    with pytest.raises(ConflictError, match="is of run a, and run b made it"):
        known: Any = SimpleNamespace(model_versions=SimpleNamespace(get=lambda *_: record))
        check_recorded(known, version)
