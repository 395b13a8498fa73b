"""The five named scenarios of the pump study: who holds how many rows of which class, and how many labels are wrong.

With four plants these are the study's: severities 1e-3, 4e-3, 7e-3 and 1e-2; 400 training rows in equal parts or 70,
15, 10 and 5 %; classes in equal parts or 90 % healthy; 0 or 15 % of the training labels flipped; 1,000 test rows, of
which each plant holds 125 healthy ones and 125 of its own severity. For other numbers of plants, severities are spread
evenly between the same ends, and sizes follow the same Lorenz curve.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from services.contracts.errors import InvalidInputError
from services.plant_simulator.pump import Array

SEVERITIES: Final = (1e-3, 1e-2)
"""Severity of the first and of the last plant."""
SKEWED_SIZES: Final = (0.70, 0.15, 0.10, 0.05)  # the study's shares of the rows, by plant
SKEWED_HEALTHY: Final = 0.90  # the study's share of healthy rows
FLIPPED: Final = 0.15  # the study's share of wrong training labels
MAX_SITES: Final = 200  # fifty times the study's plants
MAX_MEASUREMENTS: Final = 50_000
"""Training and test measurements together; they are all held in memory, 30 kB each."""
TRAINING: Final = 400
TEST: Final = 1000
"""Measurements of all plants together, where nothing else is asked for."""


@dataclass(frozen=True)
class Scenario:
    """How unlike the plants' training parts are; test parts are the same in all scenarios."""

    name: str
    client_imbalance: bool = False
    class_imbalance: bool = False
    noisy_labels: bool = False


SCENARIOS: Final = {
    scenario.name: scenario
    for scenario in (
        Scenario("nominal"),
        Scenario("client-imbalance", client_imbalance=True),
        Scenario("class-imbalance", class_imbalance=True),
        Scenario("both", client_imbalance=True, class_imbalance=True),
        Scenario("noisy-labels", noisy_labels=True),
    )
}


@dataclass(frozen=True)
class PlantShare:
    """One plant's part of a scenario: rows of each class (in the order of the classes) and training labels to flip."""

    severity: float
    train: tuple[int, ...]
    test: tuple[int, ...]
    flips: int


def plan_plants(scenario: str, sites: int, n_train: int, n_test: int, n_classes: int) -> list[PlantShare]:
    """What each plant holds.

    Parameters
    ----------
    scenario : a key of ``SCENARIOS``.
    sites, n_train, n_test : number of plants, and of training and test measurements of all plants together.
    n_classes : number of classes, healthy first.

    Raises
    ------
    InvalidInputError
        If the scenario is unknown, or the numbers leave a plant without a healthy or without a faulty measurement.
    """
    if scenario not in SCENARIOS:
        raise InvalidInputError(f"unknown scenario {scenario!r}: choose from {', '.join(SCENARIOS)}")
    if not 1 <= sites <= MAX_SITES:
        raise InvalidInputError(f"sites must be between 1 and {MAX_SITES}, got {sites}")
    if n_train + n_test > MAX_MEASUREMENTS:
        raise InvalidInputError(f"at most {MAX_MEASUREMENTS} measurements in all, got {n_train} + {n_test}")
    chosen = SCENARIOS[scenario]
    sizes = apportion(n_train, skewed_shares(sites) if chosen.client_imbalance else np.full(sites, 1.0 / sites))
    test_sizes = apportion(n_test, np.full(sites, 1.0 / sites))
    even = np.full(n_classes, 1.0 / n_classes)
    skewed = np.array([SKEWED_HEALTHY, *([(1.0 - SKEWED_HEALTHY) / (n_classes - 1)] * (n_classes - 1))])
    plants = []
    for g in range(sites):
        train = apportion(sizes[g], skewed if chosen.class_imbalance else even)
        test = apportion(test_sizes[g], even)
        for what, counts in (("training", train), ("test", test)):
            if counts[0] == 0 or sum(counts[1:]) == 0:
                raise InvalidInputError(
                    f"plant-{g + 1} would hold {sum(counts)} {what} measurements, too few for a healthy and a faulty "
                    f"one: ask for more {what} measurements or fewer sites"
                )
        flips = round(FLIPPED * sizes[g]) if chosen.noisy_labels else 0
        plants.append(PlantShare(float(severities(sites)[g]), train, test, flips))
    return plants


def severities(sites: int) -> Array:
    """Severity of each plant: evenly from the first to the last; halfway when there is one plant only."""
    return np.linspace(*SEVERITIES, sites) if sites > 1 else np.array([sum(SEVERITIES) / 2.0])


def skewed_shares(sites: int) -> Array:
    """Sizes that follow the Lorenz curve of 70, 15, 10, 5 %: exactly these for four plants; sum 1."""
    heights = np.concatenate([[0.0], np.cumsum(SKEWED_SIZES)])
    cumulative = np.interp(np.linspace(0.0, 1.0, sites + 1), np.linspace(0.0, 1.0, len(heights)), heights)
    return np.diff(cumulative)


def apportion(total: int, shares: Array) -> tuple[int, ...]:
    """Whole numbers that sum to ``total`` and are nearest to the shares: largest remainders, ties to the first.

    ``InvalidInputError`` for a total below 0.
    """
    if total < 0:
        raise InvalidInputError(f"a number of measurements must be 0 or more, got {total}")
    wanted = np.round(total * shares, 9)
    counts = np.floor(wanted).astype(int)
    order = np.argsort(-(wanted - counts), kind="stable")
    counts[order[: total - int(counts.sum())]] += 1
    return tuple(int(count) for count in counts)
