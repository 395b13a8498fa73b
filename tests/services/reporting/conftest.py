from __future__ import annotations

import math
from datetime import timedelta

import numpy as np
import pytest

from services.contracts.history.run import RoundRecord, Run, SiteAnswer, SiteTermsRecord
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.plans.plan import Plan
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.version_facts import SiteScore
from tests.versions import START, a_round, a_version, an_answer

RUN_ID = "ab" * 16


@pytest.fixture
def version() -> ModelVersion:
    asset_type = AssetType(
        name="triplex-pump",
        features=(Feature(name="flow_mean", unit="l/min", low=0.0, high=80.0),),
        fault_classes=(FaultClass(name="healthy", severity=0), FaultClass(name="leak", severity=3)),
    )
    sites = (
        SiteScore(site_id="plant-a", weight=0.75, radius=0.001, f1=0.95, worst_case_risk=0.2),
        SiteScore(site_id="plant-b", weight=0.25, radius=0.004, f1=0.8, worst_case_risk=0.4, fresh=False),
    )
    return a_version(
        asset_type, np.array([[1.0, -0.5]]), spec=TrainingSpec(label_flip_cost=math.inf), certified_gap=0.0,
        lower_bound=0.25, fresh_weight=0.75, f1=0.9, sites=sites, created_at=START + timedelta(minutes=1),
    )


@pytest.fixture
def run() -> Run:
    return Run(
        run_id=RUN_ID,
        plan=Plan(name="nightly", asset_type="triplex-pump"),
        status="completed",
        created_at=START,
        updated_at=START,
        rounds=3,
        sites=(
            SiteTermsRecord(site_id="plant-a", weight=0.75, radius=0.001, n_samples=300),
            SiteTermsRecord(site_id="plant-b", weight=0.25, radius=0.004, n_samples=100),
        ),
        absentees=(SiteAnswer(site_id="plant-c", status="refused_by_site", code="too_few_samples", reason="too few"),),
    )


@pytest.fixture
def rounds() -> tuple[RoundRecord, ...]:
    """Out of order on purpose; the site plant-b is absent in round 2 and says no in round 3."""
    second = {
        1: an_answer("plant-b", bytes_in=800, bytes_out=500, seconds=0.5),
        2: SiteAnswer(site_id="plant-b", status="absent", code="absent", reason="nobody answers", bytes_out=500),
        3: SiteAnswer(
            site_id="plant-b", status="refused_by_site", code="no_data", reason="<no data> & so on", bytes_in=90,
            bytes_out=500, seconds=0.1,
        ),
    }
    first, gaps = an_answer("plant-a", bytes_in=800, bytes_out=500, seconds=0.25), {1: math.inf, 2: 0.5, 3: 0.0}
    return tuple(
        a_round(
            RUN_ID, number, first, second[number], seconds=1.5, overhead_seconds=0.25, upper=0.5 / number,
            lower=-math.inf if number == 1 else 0.25, gap=gaps[number], fresh_weight=1.0 if number == 1 else 0.75,
        )
        for number in (3, 1, 2)
    )
