from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from services.contracts.errors import NotFoundError, UnavailableError
from services.contracts.versions.model_version import ModelVersion
from services.predictor.cache import PredictorCache

MakeVersion = Callable[..., ModelVersion]


class Shelf:
    """A source of versions in memory that counts what it is asked."""

    def __init__(self, make_version: MakeVersion) -> None:
        self.make_version = make_version
        self.champion: str | None = "1"
        self.down = False
        self.resolved = self.loaded = 0
        self.gate = threading.Event()
        self.gate.set()

    def resolve(self, name: str, alias_or_version: str) -> str:
        self.resolved += 1
        self.gate.wait(10)
        if self.down:
            raise UnavailableError("registry is down")
        found = self.champion if alias_or_version == "champion" else alias_or_version
        if found is None or not found.isdigit():
            raise NotFoundError(f"no model {name} with alias {alias_or_version}")
        return found

    def get(self, name: str, alias_or_version: str) -> ModelVersion:
        self.loaded += 1
        return self.make_version([[1.0, 0.0, 0.0, 0.0, 0.0]], version=alias_or_version)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def shelf(make_version: MakeVersion) -> Shelf:
    return Shelf(make_version)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(shelf: Shelf, clock: Clock) -> PredictorCache:
    return PredictorCache(shelf, recheck_seconds=1.0, most_versions=3, clock=clock)


def test_every_predictor_abstains_where_the_cache_was_told_to(shelf: Shelf) -> None:
    found = PredictorCache(shelf, abstain_below_radius=1e9).diagnoser("pump")
    (told,) = found.diagnose([{each.name: each.low for each in found.version.asset_type.features}])
    assert told.abstained and "below the asked 1e+09" in told.reason


def test_within_a_second_nothing_is_asked(cache: PredictorCache, shelf: Shelf, clock: Clock) -> None:
    first = cache.get("pump")
    clock.now += 0.99
    assert cache.get("pump") is first and (shelf.resolved, shelf.loaded) == (1, 1)


def test_what_is_at_hand_was_looked_up_within_the_last_second_and_nothing_is_asked(
    cache: PredictorCache, shelf: Shelf, clock: Clock
) -> None:
    """The API answers plain questions with it: a version that is champion no more must not stay at hand."""
    assert cache.at_hand("pump", "champion") is None
    first = cache.get("pump")
    clock.now += 0.99
    assert cache.at_hand("pump", "champion") is first
    assert cache.at_hand("pump", "1") is None and cache.at_hand("fan", "champion") is None
    clock.now += 0.01
    assert cache.at_hand("pump", "champion") is None and shelf.resolved == 1


def test_what_is_longest_unused_goes_first(cache: PredictorCache, shelf: Shelf, clock: Clock) -> None:
    for version in "123":
        cache.get("pump", version)
    clock.now += 2.0
    cache.get("pump", "1")
    cache.get("pump", "4")
    clock.now += 2.0
    assert shelf.loaded == 4
    shelf.down = True
    assert cache.get("pump", "1").version.version == "1", "it was used again after the second"
    with pytest.raises(UnavailableError):
        cache.get("pump", "2")
    shelf.down = False
    cache.get("pump", "1")
    assert shelf.loaded == 4, "its files are not read again"
    cache.get("pump", "2")
    assert shelf.loaded == 5


def test_a_promotion_is_seen_after_a_second_and_files_are_read_once_a_version(
    cache: PredictorCache, shelf: Shelf, clock: Clock
) -> None:
    first = cache.get("pump")
    shelf.champion = "2"
    clock.now += 1.0
    assert cache.get("pump").version.version == "2"
    shelf.champion = "1"
    clock.now += 1.0
    assert cache.get("pump") is first and (shelf.resolved, shelf.loaded) == (3, 2)


def test_alias_and_number_share_the_predictor(cache: PredictorCache, shelf: Shelf) -> None:
    assert cache.get("pump", "champion") is cache.get("pump", "1")
    assert shelf.loaded == 1


def test_a_registry_that_is_down_leaves_the_last_version_answering(
    cache: PredictorCache, shelf: Shelf, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    first = cache.get("pump")
    shelf.down = True
    clock.now += 5.0
    assert cache.get("pump") is first and "stays at version 1" in caplog.text
    with pytest.raises(UnavailableError):
        cache.get("turbine")


def test_an_alias_that_was_taken_away_is_not_served_on(cache: PredictorCache, shelf: Shelf, clock: Clock) -> None:
    cache.get("pump")
    shelf.champion = None
    clock.now += 1.0
    for _ in range(2):
        with pytest.raises(NotFoundError):
            cache.get("pump")
    shelf.down = True
    with pytest.raises(UnavailableError):
        cache.get("pump")


def test_while_one_thread_looks_the_others_go_on_with_what_they_have(
    cache: PredictorCache, shelf: Shelf, clock: Clock
) -> None:
    first = cache.get("pump")
    clock.now += 1.0
    shelf.champion = "2"
    shelf.gate.clear()
    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(cache.get, "pump")
        while shelf.resolved < 2:
            pass
        assert cache.get("pump") is first
        shelf.gate.set()
        assert looking.result(10).version.version == "2"
    assert cache.get("pump").version.version == "2"


def test_many_threads_at_a_cold_start_load_once(cache: PredictorCache, shelf: Shelf) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: cache.get("pump"), range(32)))
    assert len({id(predictor) for predictor in found}) == 1 and (shelf.resolved, shelf.loaded) == (1, 1)


def test_the_longest_unused_predictors_are_forgotten(cache: PredictorCache, shelf: Shelf, clock: Clock) -> None:
    for number in ("1", "2", "3", "4"):
        cache.get("pump", number)
    assert shelf.loaded == 4
    cache.get("pump", "4")
    assert shelf.loaded == 4
    cache.get("pump", "1")
    assert shelf.loaded == 5
