"""Under products no difference of two answers is made of a few rows, for these could be solved for."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.problems.tuning_task import TuningTask
from services.contracts.wire.messages import SiteUpdate
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.vault.isolation.exposure import Differences
from services.site_agent.vault.isolation.few_rows import LATE, OF_PRODUCTS, late_vectors, leaves_few
from services.site_agent.vault.isolation.sketches import SKETCH

PLAIN = {"loss": "hinge", "radius": {"rule": "fixed", "value": 0.01}}
PRODUCTS = {"kind": "products", "features": [0, 1, 2], "squares": True}
SPLINES = {"kind": "spline", "segments": 4}


@pytest.mark.parametrize("changed, few", [(0, False), (1, True), (3, True), (4, False), (20, False)])
def test_one_to_three_rows_are_few_and_none_or_more_are_not(changed: int, few: bool) -> None:
    base, other = np.full(20, 0.05), np.full(20, 0.05)
    other[:changed] += np.linspace(-0.04, 0.03, 20)[:changed]
    alike = np.arange(20)
    assert leaves_few(other, (base,), alike, OF_PRODUCTS) == few
    assert leaves_few(base - other, (), alike, OF_PRODUCTS) == few, "alone"


def test_rows_with_the_same_features_are_one_and_cancel() -> None:
    alike = np.array([0, 1, 0, 3, 3, 5, 6, 7])
    three = np.array([1.0, 1.0, 1.0, 1.0, 0, 0, 0, 0])
    assert leaves_few(three, (), alike, 3) and not leaves_few(three, (), np.arange(8), 3)
    cancels = np.array([0, 0, 0, 1.0, -1.0, 0, 0, 0])
    assert not leaves_few(cancels, (), alike, 3) and leaves_few(cancels, (), np.arange(8), 3)


def test_vectors_that_were_kept_are_what_they_were_also_over_other_rows() -> None:
    rng = np.random.default_rng(3)
    names, rows = np.array([7, -3, 12, 40]), rng.normal(size=(3, 4))
    before = late_vectors(np.arange(4), names, [])
    after = late_vectors(np.arange(3), np.array([40, 99, 7]), [before.packed(each) for each in rows])
    found = dict(zip([40, 99, 7, *after.beyond.tolist()], np.array(after.vectors).T, strict=True))
    assert set(found) == {40, 99, 7, -3, 12} and not found[99].any()
    for name, told in zip(names.tolist(), rows.T, strict=True):
        np.testing.assert_array_equal(found[name], told)


def test_vectors_are_held_to_the_late_ones_where_few_rows_are_asked_about() -> None:
    rng, rows = np.random.default_rng(0), 60
    found = Differences(rows, 1, np.zeros((0, SKETCH)), set(), set())
    base = (rng.random(rows) < 0.5) / rows
    two, five = base.copy(), base.copy()
    two[:2] = 1 / rows - two[:2]
    five[:5] = 1 / rows - five[:5]
    assert found.copy().admits([base, two]), "as features are, two rows have more unknowns than numbers"
    found.few = OF_PRODUCTS
    assert found.admits([base]) and not found.copy().admits([two]) and found.copy().admits([five])
    assert not found.copy().admits([five, two])
    for _ in range(LATE):
        found.note(rng.random(rows))
    assert len(found.late.vectors) == LATE and found.admits([two])


def rules() -> SitePolicy:
    return SitePolicy(
        methods=("level-bundle-plain", "cohort-bundle"), asset_types=("pump",), messages=("join", "round", "tune"),
        reveal=("each site",), min_samples=20,
    )


def row_counts(accounts: list[Any]) -> list[int]:
    """How many rows the differences of all pairs of vectors are made of."""
    vectors = [rows for account in accounts for rows in account.rows]
    return [int((np.abs(one - other) > 1e-9).sum()) for one, other in itertools.combinations(vectors, 2)]


@pytest.mark.parametrize("lift", [None, PRODUCTS, SPLINES])
def test_neighbouring_planes_have_no_few_rows_between_their_answers_under_products(
    make_site: Any, accounts_of: Any, lift: Any
) -> None:
    site = make_site(policy=rules())
    accounts, spec = accounts_of(site), TrainingSpec.model_validate(PLAIN | {"lift": lift})
    along = np.zeros(4 if lift is None else 13 if lift is SPLINES else 10)
    along[:4 if lift is SPLINES else 1] = 30.0
    for number, place in enumerate(np.linspace(0.3, 0.8, 60), start=1):
        point = along.copy()
        point[-1] = -30.0 * place
        said = site.ask("round", round=number, method="level-bundle-plain", spec=spec, arrays={"point": point[None]})
        assert isinstance(said, SiteUpdate), said
    counts = row_counts(accounts)
    few = sum(1 <= count <= OF_PRODUCTS for count in counts)
    assert (few == 0 and sum(count > OF_PRODUCTS for count in counts) > 20) if lift is PRODUCTS else few > 20


def test_folds_of_a_tuning_are_held_to_it_where_any_of_its_lifts_has_products(make_site: Any, accounts_of: Any) -> None:
    site = make_site(policy=rules())
    accounts, spec = accounts_of(site), TrainingSpec.model_validate(PLAIN)
    parts = [{"radius": 1.0, "label_flip_cost": 1.0, "lift": 1, "fold": 0}]
    asked = TuningTask.model_validate(
        {"folds": 3, "seed": 5, "lifts": [None, PRODUCTS], "scored": False, "parts": parts}
    )
    for number, place in enumerate(np.linspace(0.3, 0.8, 60), start=1):
        point = np.zeros((1, 10))
        point[0, 0], point[0, -1] = 30.0, -30.0 * place
        said = site.ask(
            "tune", round=number, method="cohort-bundle", spec=spec, tuning=asked, arrays={"point_0": point}
        )
        assert isinstance(said, SiteUpdate), said
    counts = row_counts(accounts)
    assert not any(1 <= count <= OF_PRODUCTS for count in counts) and sum(count > OF_PRODUCTS for count in counts) > 20
