"""A version at the plant: whose risk and cuts are the plant's own, and what rounding may make of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.methods.protocol import WORST_CASE
from services.contracts.errors import InvalidInputError
from services.contracts.machines.asset_type import AssetType
from services.contracts.problems.training_spec import RadiusRule, TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.version_facts import SiteScore
from services.site_agent.own_use import verify_model
from services.site_agent.own_use.own_rows import OwnRows
from services.site_agent.settings import CsvSource, SiteSettings
from services.verification.certificate_file import CertificateFile, Head
from services.verification.proof import NotProvenError

RADIUS = 0.05
WEIGHTS = np.array([[4.0, 3.0, -0.5, -3.6]])


@pytest.fixture
def rows(asset_type: AssetType, write_csv: Callable[..., Path], make_table: Any) -> OwnRows:
    data = CsvSource(kind="csv", path=write_csv(make_table(80)))
    settings = SiteSettings(site_id="plant-1", servers=("tls://oem.example:4222",), data=data)
    return OwnRows(settings, asset_type, "classification")


def risk_at(rows: OwnRows, weights: np.ndarray, flip_cost: float = 1.0) -> float:
    """Worst-case risk of the one plane on the own rows."""
    rule = RadiusRule(rule="fixed", value=RADIUS)
    return float(rows.risks(TrainingSpec(radius=rule, label_flip_cost=flip_cost), [weights]).sum())


@pytest.fixture
def version(asset_type: AssetType) -> ModelVersion:
    return ModelVersion(
        name="pump", run_id="a" * 32, plan="pump", method="level-bundle", asset_type=asset_type, spec=TrainingSpec(),
        weights=WEIGHTS, rounds=3, certified_gap=1e-3, worst_case_risk=0.4, objective=0.4, objective_name=WORST_CASE,
        lower_bound=0.39, fresh_weight=1.0, created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def own_site(risk: float | None, flip_cost: float | None = None) -> SiteScore:
    return SiteScore(
        site_id="plant-1", weight=1.0, radius=RADIUS, worst_case_risk=risk, label_flip_cost=flip_cost,
    )


def test_a_risk_that_is_told_too_low_is_no_rounding(version: ModelVersion, rows: OwnRows) -> None:
    risk = risk_at(rows, WEIGHTS)
    for factor in (1.0, 1.0 - 5e-7, 1.0009):
        assert verify_model._own_part(version, own_site(factor * risk), rows).startswith("checked: the own worst-case")
    for factor in (1.0 - 1e-5, 0.5, 1.05):
        with pytest.raises(NotProvenError, match="worst-case risk of plant-1 is"):
            verify_model._own_part(version, own_site(factor * risk), rows)
    assert "the version says nothing of it" in verify_model._own_part(version, own_site(None), rows)


def test_what_finer_steps_would_tell_is_divided_by_the_rows(version: ModelVersion) -> None:
    of_forty = verify_model._told_above(version, 40)
    assert 0.0 < of_forty == pytest.approx(2.0 * verify_model._told_above(version, 80), rel=1e-12)
    assert of_forty < 1e-3


def test_the_own_flip_cost_is_that_of_the_own_risk(version: ModelVersion, rows: OwnRows) -> None:
    own, plans = (risk_at(rows, WEIGHTS, cost) for cost in (0.02, 1.0))
    assert own > 1.01 * plans
    assert verify_model._own_part(version, own_site(own, 0.02), rows).startswith("checked")
    with pytest.raises(NotProvenError):
        verify_model._own_part(version, own_site(plans, 0.02), rows)


def certificate_of(offset: float, slope: np.ndarray, risk: float) -> CertificateFile:
    """One cut of plant-1, and its risk."""
    head = Head(
        weights=WEIGHTS[0], risks=np.array([risk]), mixture=np.ones(1), site=np.zeros(1, dtype=np.intp),
        offset=np.array([offset]), slope=slope[np.newaxis], norm_weight=np.zeros(1), swing=np.zeros((1, 0)),
        multipliers=np.ones(1), around=np.zeros(1), upper=0.4, lower=0.39,
    )
    return CertificateFile(
        run_id="a" * 32, site_ids=("plant-1",), site_weights=np.ones(1), radii=np.array([RADIUS]),
        label_flip_costs=np.ones(1), lipschitz=1.0, transport_norm="l2", fit_intercept=True, mixture_norm="none",
        mixture_radius=0.0, heads=(head,), upper=0.4, lower=0.39, gap=1e-3,
    )


def test_a_tangent_of_the_own_risk_is_a_cut_and_one_just_above_it_is_none(version: ModelVersion, rows: OwnRows) -> None:
    risk, step = risk_at(rows, WEIGHTS), 1e-5
    slope = np.array([
        (risk_at(rows, WEIGHTS + step * each) - risk_at(rows, WEIGHTS - step * each)) / (2.0 * step)
        for each in np.eye(WEIGHTS.size)[:, np.newaxis]
    ])
    tangent = certificate_of(risk - float(slope @ WEIGHTS[0]), slope, risk)
    assert verify_model._own_cuts(tangent, version, own_site(risk), rows).startswith("checked")
    (head,) = tangent.heads
    above = replace(tangent, heads=(replace(head, offset=head.offset + 1e-4),))
    with pytest.raises(NotProvenError, match="lies above its risk on its own rows"):
        verify_model._own_cuts(above, version, own_site(risk), rows)
    of_sums = replace(tangent, members=(("plant-1", "plant-2", "plant-3"),), site_ids=("cohort-1",))
    assert "sums over cohorts alone" in verify_model._own_cuts(of_sums, version, own_site(risk), rows)


def test_the_certificate_may_lie_elsewhere_and_is_that_one_then(version: ModelVersion, tmp_path: Path) -> None:
    named = version.model_copy(update={"certificate_sha256": "ab" * 32})
    document, elsewhere = tmp_path / "model.json", tmp_path / "elsewhere.npz"
    document.write_text(json.dumps(named.to_document()))
    elsewhere.write_bytes(b"another")
    data = CsvSource(kind="csv", path=tmp_path / "data.csv")
    settings = SiteSettings(site_id="plant-1", servers=("tls://oem.example:4222",), data=data)
    with pytest.raises(InvalidInputError, match="put it beside the version as certificate.npz"):
        verify_model.verify_model(document, None, settings, None)
    with pytest.raises(NotProvenError, match="not the one that the version names: its SHA-256 is another"):
        verify_model.verify_model(document, elsewhere, settings, None)
