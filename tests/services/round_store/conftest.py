"""A store on each server, and small records to put into it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from services.contracts.history.run import RoundRecord, Run, SiteAnswer, SiteTermsRecord
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.plans.plan import Plan
from services.round_store.store import RoundStore


@pytest.fixture
def asset_type() -> AssetType:
    """A small asset type."""
    return AssetType(
        name="pump",
        features=(Feature(name="flow", unit="m3/h", low=-0.1, high=1 / 3),),
        fault_classes=(FaultClass(name="healthy", severity=0), FaultClass(name="leak", severity=3)),
    )


@pytest.fixture
def plan() -> Plan:
    """A plan with numbers that decimals do not hit, and the infinite label flip cost."""
    spec = {"label_flip_cost": float("inf"), "radius": {"rule": "samples", "value": 0.1 + 0.2}}
    return Plan(name="weekly", asset_type="pump", spec=spec, parameters={"rho": 1e-320, "step": -0.0})


@pytest.fixture
def terms() -> tuple[SiteTermsRecord, ...]:
    """Scalars of two sites."""
    return (
        SiteTermsRecord(site_id="a", weight=1 / 3, radius=float("inf"), n_samples=7),
        SiteTermsRecord(site_id="b", weight=2 / 3, radius=1e-17, n_samples=2**40),
    )


@pytest.fixture
def make_record() -> Callable[..., RoundRecord]:
    """Make a round record with two answers."""

    def make(run_id: str, round_: int, **changes: Any) -> RoundRecord:
        fields: dict[str, Any] = {
            "run_id": run_id,
            "round": round_,
            "started_at": datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
            "seconds": 0.1,
            "overhead_seconds": 1e-3,
            "upper": 1 / 3,
            "lower": 0.1 + 0.2,
            "gap": 1 / 3 - 0.3,
            "fresh_weight": 2 / 3,
            "answers": (
                SiteAnswer(site_id="a", status="accepted", bytes_in=10, bytes_out=20, seconds=0.3, payload_sha256="00"),
                SiteAnswer(site_id="b", status="refused_by_site", code="no_data", reason="the site has no data"),
            ),
        }
        return RoundRecord(**(fields | changes))

    return make


@pytest.fixture
def running(store: RoundStore, plan: Plan, terms: tuple[SiteTermsRecord, ...]) -> Run:
    """A run that has begun."""
    return store.runs.begin_run(store.runs.create_run(plan).run_id, terms)
