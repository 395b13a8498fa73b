"""A keyed digest: the same for the same risk, another for any other, and of no use without the secret."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.geometry.supports import BoxSupport
from models.problem import RobustSpec, SiteProblem
from services.site_agent.vault.row_digest import row_digest

SECRET = bytes(range(32))
PROBLEM = SiteProblem(np.arange(8.0).reshape(4, 2), np.array([1.0, -1.0, 1.0, -1.0]), RobustSpec(0.1, 1.0))


def told(problem: SiteProblem = PROBLEM, secret: bytes = SECRET, site: str = "a", contract: str = "c") -> str:
    return row_digest(secret, site, contract, [problem])


def test_the_same_rows_and_terms_give_the_same_digest_from_another_copy() -> None:
    copy = SiteProblem(PROBLEM.features.copy(), PROBLEM.labels.copy(), RobustSpec(0.1, 1.0))
    assert told(copy) == told() and len(told()) == 64


@pytest.mark.parametrize("changed", [
    replace(PROBLEM, features=PROBLEM.features + np.eye(4, 2) * 1e-15),
    replace(PROBLEM, labels=-PROBLEM.labels),
    replace(PROBLEM, features=PROBLEM.features[::-1].copy()),
    replace(PROBLEM, row_weights=np.ones(4)),
    replace(PROBLEM, spec=RobustSpec(0.2, 1.0)),
    replace(PROBLEM, spec=RobustSpec(0.1, 2.0)),
    replace(PROBLEM, spec=RobustSpec(0.1, 1.0, "l1")),
    replace(PROBLEM, spec=RobustSpec(0.1, 1.0, support=BoxSupport(np.zeros(2), np.full(2, 9.0)))),
    replace(PROBLEM, spec=RobustSpec(0.1, 1.0, fit_intercept=False)),
])
def test_any_other_rows_or_terms_give_another(changed: SiteProblem) -> None:
    assert told(changed) != told()


def test_another_secret_plant_or_contract_gives_another() -> None:
    others = (told(), told(secret=SECRET[::-1]), told(site="b"), told(contract="d"), told(site="ac", contract=""))
    assert len(set(others)) == len(others)
    assert row_digest(SECRET, "a", "c", [PROBLEM, PROBLEM]) != told()
