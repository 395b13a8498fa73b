"""A version is held against the plant's training rows that serve its task, and against no other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.contracts.errors import InvalidInputError
from services.contracts.machines.asset_type import AssetType
from services.contracts.problems.lift import FourierLiftSpec, pinned
from services.contracts.problems.training_spec import RadiusRule, TrainingSpec
from services.site_agent.own_use.own_rows import OwnRows
from services.site_agent.settings import CsvSource, SiteSettings
from services.site_agent.vault.reader import Vault
from tests.services.site_agent.conftest import TWO_CLASSES, table

TRUSTED = TrainingSpec(radius=RadiusRule(rule="fixed", value=0.0))
PLANE = np.array([[1.0, -2.0, 0.5, 0.25]])


@pytest.fixture
def settings(write_csv: Callable[..., Path], tmp_path: Path) -> Callable[[list[list[Any]]], SiteSettings]:
    def of(rows: list[list[Any]]) -> SiteSettings:
        source = CsvSource(kind="csv", path=write_csv(rows))
        return SiteSettings(site_id="p", servers=("nats://a:1",), data=source, exposure=tmp_path / "e.sqlite")

    return of


def test_without_a_ball_the_risk_is_the_mean_loss_of_the_training_rows(
    settings: Callable[[list[list[Any]]], SiteSettings], asset_type: AssetType
) -> None:
    site = settings(table(80))
    rows = OwnRows(site, asset_type, "classification")
    train = Vault(site.data, asset_type).current().train
    assert len(rows) == len(train) == 60
    signs = np.where(train.classes == 1, 1.0, -1.0)
    points = [PLANE, 2.0 * PLANE]
    wanted = [[np.maximum(0.0, 1.0 - signs * (train.features @ each[0, :-1] + each[0, -1])).mean()] for each in points]
    np.testing.assert_allclose(rows.risks(TRUSTED, points), wanted, rtol=1e-9)


def test_rows_are_those_of_the_versions_task(
    settings: Callable[[list[list[Any]]], SiteSettings], tmp_path: Path
) -> None:
    (tmp_path / "target.toml").write_text(TWO_CLASSES + '[target]\nname = "gap"\nunit = "mm"\nlow = 0.0\nhigh = 8.0\n')
    both = AssetType.from_toml(tmp_path / "target.toml")
    header, *rows = table(80)
    for number, row in enumerate(rows):
        row.append(float(number % 8))
        row[3] = "" if number % 4 == 0 else row[3]
    site = settings([[*header, "gap"], *rows])
    train = Vault(site.data, both).current().train
    assert len(OwnRows(site, both, "classification")) == int(train.known("classification").sum()) < len(train)
    assert len(OwnRows(site, both, "regression")) == len(train)


def test_rows_that_wait_for_others_are_not_of_the_version(
    make_site: Callable[..., Any], write_csv: Callable[..., Path], asset_type: AssetType
) -> None:
    site = make_site()
    site.restarted(policy=site.policy.model_copy(update={"min_new_rows": 5}))
    spec = TrainingSpec(radius=RadiusRule(rule="fixed", value=0.0))
    site.ask("join")
    told = site.ask("evaluate", arrays={"weights": PLANE}, spec=spec).arrays["risk"]
    write_csv(table(103), "site/data.csv")
    (site.folder / "policy.toml").write_text("min_new_rows = 5\n")
    settings = SiteSettings(
        site_id="p", servers=("nats://a:1",), data=site.source, policy=site.folder / "policy.toml",
        exposure=site.folder / "exposure.sqlite",
    )
    before = site.door._batches.read("SELECT * FROM row_group", ())
    rows = OwnRows(settings, asset_type, "classification")
    assert len(rows) == 76 and rows.risks(spec, [PLANE])[0, 0] == pytest.approx(told[0], rel=1e-3)
    write_csv(table(140), "site/data.csv")
    assert len(OwnRows(settings, asset_type, "classification")) > 90, "so many come together"
    assert site.door._batches.read("SELECT * FROM row_group", ()) == before, "who looks remembers nothing"
    write_csv(table(103), "site/data.csv")
    (site.folder / "policy.toml").write_text("min_new_rows = 2\n")
    whole = len(Vault(site.source, asset_type).current().train)
    assert len(OwnRows(settings, asset_type, "classification")) != whole, "by twos rows come in groups too"
    (site.folder / "policy.toml").write_text("")
    assert len(OwnRows(settings, asset_type, "classification")) == len(Vault(site.source, asset_type).current().train)


def test_a_version_of_another_lift_does_not_fit(
    settings: Callable[[list[list[Any]]], SiteSettings], asset_type: AssetType
) -> None:
    """The lift is drawn anew from its seed; where that gives another one, nothing is held against it."""
    rows = OwnRows(settings(table(80)), asset_type, "classification")
    lift = pinned(FourierLiftSpec(components=4, bandwidth=0.5), 3)
    assert isinstance(lift, FourierLiftSpec)
    spec, planes = TRUSTED.model_copy(update={"lift": lift}), [np.ones((1, lift.size(3) + 1))]
    assert rows.risks(spec, planes).shape == (1, 1)
    other = spec.model_copy(update={"lift": lift.model_copy(update={"fingerprint": "0" * 64})})
    with pytest.raises(InvalidInputError, match="the plant's rows do not fit the version"):
        rows.risks(other, planes)
