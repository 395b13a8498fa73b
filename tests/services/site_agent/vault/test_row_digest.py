"""A keyed digest: the same for the same rows and terms, another for any other, and of no use without the secret."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from services.contracts.problems.training_spec import TrainingSpec
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.vault.row_digest import row_digest

SECRET = bytes(range(32))
FEATURES, CLASSES = np.arange(8.0).reshape(4, 2) / 8.0, np.array([1.0, 0.0, 1.0, 0.0])
ELSEWHERE = {"kind": "nystrom", "points": [[0.0, 1.0, 0.5]], "bandwidth": 1e-6, "keep_linear": False}


def spec(**changes: Any) -> TrainingSpec:
    return TrainingSpec.model_validate({"radius": {"rule": "fixed", "value": 0.1}} | changes)


def told(
    features: np.ndarray = FEATURES, outcomes: np.ndarray = CLASSES, terms: TrainingSpec | None = None,
    secret: bytes = SECRET, site: str = "a", contract: str = "c",
) -> str:
    return row_digest(secret, site, contract, terms or spec(), features, outcomes)


def test_the_same_rows_and_terms_give_the_same_digest_from_another_copy() -> None:
    assert told(FEATURES.copy(), CLASSES.astype(np.intp)) == told() and len(told()) == 64


@pytest.mark.parametrize("changed", [
    {"features": FEATURES + np.eye(4, 2) * 1e-15},
    {"outcomes": 1.0 - CLASSES},
    {"features": FEATURES[::-1].copy()},
    {"features": FEATURES.reshape(2, 4)},
    {"terms": spec(radius={"rule": "fixed", "value": 0.2})},
    {"terms": spec(label_flip_cost=2.0)},
    {"terms": spec(transport_norm="l1")},
    {"terms": spec(support="sensor_ranges")},
    {"terms": spec(fit_intercept=False)},
    {"terms": spec(lift={"kind": "spline", "segments": 2})},
])
def test_any_other_rows_or_terms_give_another(changed: dict[str, Any]) -> None:
    assert told(**changed) != told()


def test_another_secret_plant_or_contract_gives_another() -> None:
    others = (told(), told(secret=SECRET[::-1]), told(site="b"), told(contract="d"), told(site="ac", contract=""))
    assert len(set(others)) == len(others)


def test_another_release_gives_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it answers may differ in the last digits, and what another release told holds for none of it."""
    before = told()
    monkeypatch.setattr("services.site_agent.vault.row_digest._release", lambda: "0.0.1")
    assert told() != before


def joined(site: Any, run: str, **terms: Any) -> str:
    return str(site.ask("join", run_id=run, spec=TrainingSpec.model_validate(terms)).data_digest)


@pytest.mark.parametrize("reveal", ["sums", "each site"])
@pytest.mark.parametrize("tells", [True, False])
def test_whether_anything_changed_is_told_as_the_policy_says_in_either_mode(
    make_site: Any, reveal: str, tells: bool
) -> None:
    site = make_site(policy=SitePolicy(
        methods=("level-bundle",), asset_types=("pump",), messages=("join",), reveal=("sums", "each site"),
        tell_unchanged=tells,
    ))
    assert bool(site.ask("join", reveal=reveal).data_digest) == tells


@pytest.fixture
def site(make_site: Any) -> Any:
    return make_site(policy=SitePolicy(
        methods=("level-bundle",), asset_types=("pump",), messages=("join",), reveal=("each site",),
    ))


def test_no_two_problems_have_one_digest_where_their_lifts_see_nothing_of_the_rows(site: Any) -> None:
    """Equal ones would say that no row lies near either point: fifty questions tell how far the nearest is."""
    other = ELSEWHERE | {"points": [[1.0, 0.0, 0.5]]}
    assert joined(site, "a" * 32, lift=ELSEWHERE) != joined(site, "b" * 32, lift=other)
    assert joined(site, "c" * 32, lift=ELSEWHERE) == joined(site, "a" * 32, lift=ELSEWHERE) != ""


def test_a_join_does_not_say_whether_the_rows_lie_in_a_polytope(site: Any) -> None:
    """Halving half-spaces would give the largest value of any sum of sensors, which is that of one row."""
    walls = np.vstack([np.eye(3), -np.eye(3), [[1.0, 0.0, 0.0]]]).tolist()
    ranges = [100.0, 10.0, 4.0, 0.0, 10.0, 0.0]
    for number, wall in enumerate((60.0, 101.0)):
        assert len(joined(site, str(number) * 32, support={"matrix": walls, "limits": [*ranges, wall]})) == 64
