"""Four plants on sums, and a liar among them that the first audit meets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.problem import RobustSpec, SiteProblem
from services.auditing.auditor import AuditCase
from services.auditing.request import falsehood_of_sums
from tests.attacks.cohort import Cohort

LIAR = "plant-4"


def problems(seed: int = 0, count: int = 24) -> dict[str, SiteProblem]:
    """Four plants with three features."""
    draw, truth = np.random.default_rng(seed), np.array([1.0, -0.7, 0.4])
    sites = {}
    for g in range(1, 5):
        rows = np.clip(draw.uniform(size=(count, 3)) + 0.05 * g, 0, 1)
        labels = np.where((rows - 0.5) @ truth + 0.3 * draw.standard_normal(count) > 0, 1.0, -1.0)
        sites[f"plant-{g}"] = SiteProblem(rows, labels, RobustSpec(0.02, 1.0))
    return sites


def halved(number: int, said: dict[str, Any], plants: object) -> dict[str, Any]:
    """Half the risk, and cuts that fit it at the point."""
    lowered = {"risk", "cut_height", "minorant_offset"}
    return {name: each * (0.5 if name in lowered and number > 1 else 1.0) for name, each in said.items()}


@pytest.fixture
def cohort(tmp_path: Path) -> Callable[..., Cohort]:
    """Make a cohort; the changes are those of :class:`Cohort`."""
    return lambda **changes: Cohort(problems(), tmp_path, **changes)


def caught(make: Callable[..., Cohort]) -> Cohort:
    """A cohort at the round in which the liar was found."""
    cohort = make(liar=LIAR, lie=halved)
    while not cohort.done:
        if found := cohort.round():
            assert [(each.site, each.kind) for each in found] == [(LIAR, "contradiction")]
            return cohort
    raise AssertionError("the lie was not found")


def false_case(cohort: Cohort) -> AuditCase:
    """The case of two rounds that contradict each other."""
    for one in range(1, len(cohort.rounds)):
        request = cohort.request(one, len(cohort.rounds))
        if falsehood_of_sums(request.rounds):
            return cohort.case(one, len(cohort.rounds))
    raise AssertionError("no two rounds contradict each other")


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Cohort, AuditCase]:
    """A cohort whose plants have opened the two rounds in which a liar shows; a case is changed by copies of it."""
    folder = tmp_path_factory.mktemp("audit")
    told = caught(lambda **changes: Cohort(problems(), folder, **changes))
    return told, false_case(told)
