"""Who a run's model is of, and with what confidence, by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from services.contracts.history.run import ExcludedSite, Run, SiteTermsRecord
from services.contracts.plans.plan import Plan

AT = datetime(2030, 1, 1, tzinfo=UTC)


def run(weights: dict[str, float], gone: tuple[str, ...] = (), **confidences: float | None) -> Run:
    sites = tuple(
        SiteTermsRecord(site_id=name, weight=weight, radius=0.1, n_samples=9, confidence=confidences.get(name))
        for name, weight in weights.items()
    )
    left: Any = tuple(ExcludedSite(site_id=name, round=2, code="implausible", reason="no") for name in gone)
    return Run(
        run_id="0" * 32, plan=Plan(name="nightly", asset_type="pump"), status="running", created_at=AT, updated_at=AT,
        sites=sites, excluded=left,
    )


def test_the_weights_of_those_that_are_left_sum_to_one() -> None:
    found = run({"a": 0.5, "b": 0.2, "c": 0.3}, gone=("a",)).members
    assert [site.site_id for site in found] == ["b", "c"]
    assert [site.weight for site in found] == pytest.approx([0.4, 0.6])
    assert [site.weight for site in run({"a": 0.5, "b": 0.2}).members] == [0.5, 0.2], "as they were, without exclusions"
    assert run({"a": 1.0}, gone=("a",)).members == ()
    assert [site.weight for site in run({"a": 1.0, "b": 0.0}, gone=("a",)).members] == [0.0], "it had no share"


def test_a_mixture_has_no_confidence_where_one_site_claims_none() -> None:
    assert run({"a": 0.5, "b": 0.5}, a=0.9).mixture_confidence is None
    assert run({}).mixture_confidence is None


def test_the_confidence_of_a_mixture_is_that_of_its_members_alone() -> None:
    """All balls hold with the product of the members' confidences: 0.98 * 0.95."""
    weights = {"a": 0.5, "b": 0.2, "c": 0.3}
    assert run(weights, ("a",), b=0.98, c=0.95).mixture_confidence == pytest.approx(0.931)
    assert run(weights, ("a",), a=0.5, b=0.98, c=0.95).mixture_confidence == pytest.approx(0.931)
