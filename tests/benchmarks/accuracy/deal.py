"""A table dealt to four unlike plants, and each plant's rows split into training and test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from tests.benchmarks.accuracy.tables import Table

PLANTS = 4
UNLIKE = 1.0
"""Weight of the first principal component against noise of the same size: plants overlap, and none is like another."""
TEST_SHARE = 0.3
_LEAST_OF_CLASS = 4
"""Rows of a class at a plant: rarer ones join the plant with most of them, so that each plant can learn what it has."""


@dataclass(frozen=True)
class Part:
    """Rows of the table: ``features`` (n, P), ``outcomes`` (n,), ``plants`` (n,) numbers of the plants.

    ``machines`` (n,) names, None where the table has none: who searches a grid keeps them whole.
    """

    features: FloatArray
    outcomes: NDArray[Any]
    plants: NDArray[np.intp]
    machines: NDArray[Any] | None = None

    def of(self, plant: int) -> Part:
        """The rows of one plant."""
        return self.chosen(self.plants == plant)

    def chosen(self, rows: NDArray[np.bool_]) -> Part:
        """Some of the rows."""
        machines = None if self.machines is None else self.machines[rows]
        return Part(self.features[rows], self.outcomes[rows], self.plants[rows], machines)


def deal(table: Table, seed: int) -> tuple[Part, Part]:
    """Training and test rows at four unlike plants; whole machines go to a plant, and to one of the two parts.

    Every class is in the training rows of some plant. ``ValueError`` where a plant has no rows of a part.
    """
    draw = np.random.default_rng([23, seed])
    plants = _by_machine(table, draw) if table.machines is not None else _by_component(table, draw)
    kept: set[str] = set()
    test = _test_rows(table, plants, kept, draw)
    while (unseen := _unseen_class(table, test)) is not None:
        kept.add(_main_machine(table, unseen))
        test = _test_rows(table, plants, kept, draw)
    for plant in range(PLANTS):
        for part, chosen in (("training", ~test), ("test", test)):
            if not (chosen & (plants == plant)).any():
                what = "rows" if table.machines is None else "machines of alike many rows"
                raise ValueError(f"plant {plant + 1} has no {part} rows in deal {seed}: the table has too few {what}")
    return _part(table, plants, ~test), _part(table, plants, test)


def class_numbers(words: NDArray[Any], outcomes: NDArray[Any]) -> NDArray[np.intp]:
    """Place of each outcome (n,) among the sorted classes ``words``; ``ValueError`` for one that is none of them."""
    if (unseen := np.setdiff1d(outcomes, words)).size:
        raise ValueError(f"class {unseen[0]} is in no training row")
    return np.searchsorted(words, outcomes)


def _test_rows(
    table: Table, plants: NDArray[np.intp], kept: set[str], draw: np.random.Generator
) -> NDArray[np.bool_]:
    """Which rows (N,) are held out, without those of the machines in ``kept``."""
    test = np.zeros(len(plants), dtype=bool)
    for plant in range(PLANTS):
        test[_held_out(table, np.flatnonzero(plants == plant), kept, draw)] = True
    return test


def _unseen_class(table: Table, test: NDArray[np.bool_]) -> str | None:
    """A class all of whose rows are held out, as where it lives on one machine."""
    if table.task == "regression":
        return None
    return next((str(each) for each in np.unique(table.outcomes) if test[table.outcomes == each].all()), None)


def _main_machine(table: Table, label: str) -> str:
    """The machine with most rows of a class."""
    assert table.machines is not None, "rows without machines are held out by class, and some of each stay"
    names, counts = np.unique(table.machines[table.outcomes == label], return_counts=True)
    return str(names[counts.argmax()])


def _part(table: Table, plants: NDArray[np.intp], rows: NDArray[np.bool_]) -> Part:
    return Part(table.features, table.outcomes, plants, table.machines).chosen(rows)


def _by_component(table: Table, draw: np.random.Generator) -> NDArray[np.intp]:
    """Quarters of the rows by first principal component and noise; none of a class stay where it is rare."""
    score = _component(table.features)
    score = UNLIKE * score + draw.standard_normal(len(score))
    plants = np.empty(len(score), dtype=np.intp)
    for number, rows in enumerate(np.array_split(np.argsort(score, kind="stable"), PLANTS)):
        plants[rows] = number
    if table.task == "classification":
        for label in np.unique(table.outcomes):
            of_class = np.flatnonzero(table.outcomes == label)
            counts = np.bincount(plants[of_class], minlength=PLANTS)
            few = np.isin(plants[of_class], np.flatnonzero(counts < _LEAST_OF_CLASS))
            plants[of_class[few]] = int(counts.argmax())
    return plants


def _by_machine(table: Table, draw: np.random.Generator) -> NDArray[np.intp]:
    """Whole machines, those with near means at one plant, as many rows at each as whole machines allow.

    Where that leaves a plant fewer than two machines, one for each part, as many machines at each.
    """
    assert table.machines is not None
    names, index = np.unique(table.machines, return_inverse=True)
    means = np.bincount(index, _component(table.features)) / np.bincount(index)
    order = np.argsort(UNLIKE * means / max(float(means.std()), 1e-12) + draw.standard_normal(len(names)))
    ends = np.cumsum(np.bincount(index)[order]) / len(index)
    of_machine = np.empty(len(names), dtype=np.intp)
    of_machine[order] = np.minimum((ends - 1e-9) * PLANTS, PLANTS - 1).astype(np.intp)
    if np.bincount(of_machine, minlength=PLANTS).min() < 2:  # one machine has most of the rows
        of_machine[order] = np.arange(len(names)) * PLANTS // len(names)
    return of_machine[index]


def _held_out(
    table: Table, rows: NDArray[np.intp], kept: set[str], draw: np.random.Generator
) -> NDArray[np.intp]:
    """A share of a plant's rows: whole machines, or by class, or at random.

    Machines in ``kept`` stay, as one with more than half of the rows does; without any the last drawn stays.
    """
    if table.machines is not None:
        own = table.machines[rows]
        names = draw.permutation(np.unique(own))
        free = [name for name in names if name not in kept and 2 * np.sum(own == name) <= len(rows)]
        wanted, taken = TEST_SHARE * len(rows), np.zeros(0, dtype=np.intp)
        for name in free[:-1] if len(free) == len(names) else free:
            if len(taken) >= wanted:
                break
            taken = np.append(taken, rows[own == name])
        return taken
    strata = table.outcomes[rows] if table.task == "classification" else np.zeros(len(rows))
    parts = [draw.permutation(rows[strata == each]) for each in np.unique(strata)]
    return np.concatenate([rows[:0], *(each[: round(TEST_SHARE * len(each))] for each in parts)])


def _component(features: FloatArray) -> FloatArray:
    """First principal component of the standardised features (N,), itself with deviation 1."""
    spread = features.std(axis=0)
    whitened = (features - features.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    score = whitened @ np.linalg.svd(whitened, full_matrices=False)[2][0]
    return np.asarray(score / max(float(score.std()), 1e-12))
