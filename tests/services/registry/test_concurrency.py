from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from services.contracts.versions.model_version import ModelVersion
from services.registry import labels
from services.registry.mlflow_registry import ModelRegistry

MakeVersion = Callable[..., ModelVersion]


def register_some(registry: ModelRegistry, make_version: MakeVersion, name: str, count: int) -> list[str]:
    return [registry.register(make_version(name=name), (), {}).version for _ in range(count)]


def test_promotions_from_many_threads_leave_a_full_line_of_champions(
    registry: ModelRegistry, make_version: MakeVersion, name: str
) -> None:
    numbers = register_some(registry, make_version, name, 4)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: registry.promote(name, number), numbers))
    line = registry._store.model(name)[1][labels.CHAMPIONS].split(",")
    assert sorted(line) == numbers
    for expected in reversed(line[:-1]):
        assert registry.rollback(name).version == expected


def test_promotions_from_two_processes_leave_a_champion_that_can_be_rolled_back(
    registry: ModelRegistry, registry_home: Path, tracking_uri: str, make_version: MakeVersion, name: str
) -> None:
    """Two registries share nothing but the store, as two processes do."""
    other = ModelRegistry(tracking_uri, registry_home / "artifacts")
    numbers = register_some(registry, make_version, name, 3)
    registry.promote(name, numbers[0])
    with ThreadPoolExecutor(2) as pool:
        for _ in range(3):
            list(pool.map(lambda pair: pair[0].promote(name, pair[1]), [(registry, numbers[1]), (other, numbers[2])]))
    champion = registry.get(name, "champion").version
    assert champion in numbers[1:] and other.get(name, "champion").version == champion
    before = other.rollback(name).version
    assert before in numbers and before != champion
    assert registry.get(name, "champion").version == before


def test_an_alias_that_two_processes_make_at_once_is_made(
    registry: ModelRegistry, registry_home: Path, tracking_uri: str, make_version: MakeVersion, name: str
) -> None:
    """MLflow looks whether the alias is there and then inserts it, so that one of the two finds it made meanwhile."""
    other = ModelRegistry(tracking_uri, registry_home / "artifacts")
    other.prepare()
    (number,) = register_some(registry, make_version, name, 1)
    with ThreadPoolExecutor(2) as pool:
        for turn in range(30):
            alias = f"made-{turn}"
            list(pool.map(lambda one, alias=alias: one.point(name, alias, number), (registry, other)))
            assert registry.aliases(name)[alias] == number


def test_different_runs_registered_at_once_get_different_numbers(
    registry: ModelRegistry, make_version: MakeVersion, name: str
) -> None:
    versions = [make_version(name=name, seed=seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        registered = list(pool.map(lambda version: registry.register(version, (), {}), versions))
    assert sorted(version.version for version in registered) == ["1", "2", "3", "4"]
    assert registry.resolve(name, "challenger") == "4"
    for given, found in zip(versions, registered, strict=True):
        assert registry.get(name, found.version).weights.tobytes() == given.weights.tobytes()
