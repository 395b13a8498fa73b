"""Predictors kept ready: the alias is looked up about once a second, a model's files once for each version."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from services.contracts.errors import ConflictError, NotFoundError, UnavailableError
from services.contracts.versions.model_version import ModelVersion
from services.predictor.estimator import Estimator
from services.predictor.predictor import Predictor
from services.predictor.tally import Tally

logger = logging.getLogger(__name__)
Served = Predictor | Estimator
"""What serves a version: a predictor of classes or an estimator of a target."""


class ModelSource(Protocol):
    """Where versions come from: the registry."""

    def resolve(self, name: str, alias_or_version: str) -> str:
        """Version number behind an alias or number; raise ``NotFoundError``."""

    def get(self, name: str, alias_or_version: str) -> ModelVersion:
        """The whole version; raise ``NotFoundError``."""


@dataclass(frozen=True)
class _Seen:
    predictor: Served
    until: float


class PredictorCache:
    """Predictors by model name and alias.

    Parameters
    ----------
    source : the registry.
    recheck_seconds : a promotion is seen at most this long after it was made.
    most_versions : predictors kept, the longest unused go first.
    abstain_below_radius : handed to every predictor.

    ``tally`` has the counts of all answers.

    A registry that is unavailable does not stop diagnosis: the version that was seen last goes on answering, and the
    log says so.
    """

    def __init__(
        self,
        source: ModelSource,
        *,
        recheck_seconds: float = 1.0,
        most_versions: int = 32,
        abstain_below_radius: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._recheck = recheck_seconds
        self._most = most_versions
        self._abstain_below = abstain_below_radius
        self.tally = Tally()
        self._clock = clock
        self._seen: OrderedDict[tuple[str, str], _Seen] = OrderedDict()
        self._ready: OrderedDict[tuple[str, str], Served] = OrderedDict()
        self._looking = threading.Lock()

    def diagnoser(self, name: str, alias_or_version: str = "champion") -> Predictor:
        """Predictor of a version of classes; ``NotFoundError`` where there is none, ``ConflictError`` for a target."""
        return a_predictor(self.get(name, alias_or_version), name)

    def estimator(self, name: str, alias_or_version: str = "champion") -> Estimator:
        """Estimator of a version of a target; ``NotFoundError`` where there is none, ``ConflictError`` for classes."""
        return an_estimator(self.get(name, alias_or_version), name)

    def at_hand(self, name: str, alias_or_version: str) -> Served | None:
        """What serves a version, where that was looked up within the last second; None otherwise. Never waits."""
        seen = self._seen.get((name, alias_or_version))
        return None if seen is None or self._clock() >= seen.until else seen.predictor

    def get(self, name: str, alias_or_version: str = "champion") -> Served:
        """What serves a version; raise ``NotFoundError`` where there is none."""
        key = (name, alias_or_version)
        seen = self._seen.get(key)
        if seen is not None and self._clock() < seen.until:
            return seen.predictor
        # One thread looks; the others go on with what they have, and wait only where they have nothing.
        if not self._looking.acquire(blocking=seen is None) and seen is not None:
            return seen.predictor
        try:
            return self._refresh(key)
        finally:
            self._looking.release()

    def _refresh(self, key: tuple[str, str]) -> Served:
        seen = self._seen.get(key)
        if seen is not None and self._clock() < seen.until:
            return seen.predictor
        try:
            predictor = self._look(key, seen)
        except NotFoundError:
            self._seen.pop(key, None)
            raise
        self._seen[key] = _Seen(predictor, self._clock() + self._recheck)
        self._seen.move_to_end(key)
        self._forget()
        return predictor

    def _look(self, key: tuple[str, str], seen: _Seen | None) -> Served:
        name, alias_or_version = key
        try:
            version = self._source.resolve(name, alias_or_version)
            return self._load(name, version)
        except UnavailableError as error:
            if seen is None:
                raise
            number = seen.predictor.version.version
            logger.warning("registry unavailable, model %s stays at version %s: %s", name, number, error)
            return seen.predictor

    def _load(self, name: str, version: str) -> Served:
        key = (name, version)
        predictor = self._ready.get(key)
        if predictor is None:
            predictor = self._open(self._source.get(name, version))
            self._ready[key] = predictor
        self._ready.move_to_end(key)
        return predictor

    def _open(self, version: ModelVersion) -> Served:
        if version.task == "regression":
            return Estimator(version, tally=self.tally)
        return Predictor(version, abstain_below_radius=self._abstain_below, tally=self.tally)

    def _forget(self) -> None:
        for kept in (self._seen, self._ready):
            while len(kept) > self._most:
                kept.popitem(last=False)


def a_predictor(served: Served, name: str) -> Predictor:
    """What serves a model, where it tells classes; ``ConflictError`` for a target."""
    if isinstance(served, Predictor):
        return served
    goal = served.target
    raise ConflictError(
        f"model {name} estimates {goal.name} in {goal.unit} and tells no classes: ask /v1/models/{name}/estimate",
        code="wrong_task",
    )


def an_estimator(served: Served, name: str) -> Estimator:
    """What serves a model, where it estimates a target; ``ConflictError`` for classes."""
    if isinstance(served, Estimator):
        return served
    raise ConflictError(
        f"model {name} tells classes and estimates no target: ask /v1/models/{name}/diagnose", code="wrong_task"
    )
