"""Fairness reports: indices by hand, missing figures, the champion beside it, the page and the pictures."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from xml.etree import ElementTree

import numpy as np
import pytest

from models.methods.protocol import WORST_CASE
from services.contracts.messages import TrainingSpec
from services.contracts.model_version import ModelVersion, SiteScore
from services.plant_simulator.assets import builtin_asset_type
from services.reporting.fairness_page import fairness_page
from services.reporting.fairness_report import fairness_report
from services.reporting.lorenz_chart import lorenz_chart


def version(number: str, losses: dict[str, float | None], risks: dict[str, float] | None = None) -> ModelVersion:
    asset_type = builtin_asset_type("triplex-pump")
    sites = tuple(
        SiteScore(
            site_id=site, weight=1 / len(losses), radius=0.1, loss=loss, worst_case_risk=(risks or {}).get(site), f1=0.9
        )
        for site, loss in losses.items()
    )
    return ModelVersion(
        name="pumps", version=number, run_id="0" * 32, plan="pumps", method="level-bundle", asset_type=asset_type,
        spec=TrainingSpec(), weights=np.zeros((1, len(asset_type.features) + 1)), rounds=3, certified_gap=1e-3,
        worst_case_risk=0.5, objective=0.5, objective_name=WORST_CASE,
        lower_bound=0.4995, fresh_weight=1.0, created_at=datetime(2031, 1, 2, tzinfo=UTC),
        sites=sites,
    )


def test_indices_are_those_of_hand_calculation() -> None:
    (found,) = fairness_report(version("2", {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0, "e": 10.0})).indices
    assert (found.basis, found.n_sites) == ("loss", 5)
    assert found.relative_unfairness == pytest.approx(10.0)
    assert found.palma == pytest.approx(10.0 / 1.5)
    assert found.gini == pytest.approx(0.4)
    assert found.atkinson_infinite == pytest.approx(0.75)
    assert (found.worst_site, found.mean) == (10.0, pytest.approx(4.0))
    assert [point.losses for point in found.lorenz] == pytest.approx([0, 0.05, 0.15, 0.3, 0.5, 1])


def test_both_bases_are_judged_where_both_are_known() -> None:
    losses: dict[str, float | None] = dict.fromkeys("abcdef", 0.5)
    report = fairness_report(version("2", losses, dict.fromkeys("abcdef", 0.7)))
    assert [indices.basis for indices in report.indices] == ["loss", "worst_case_risk"]
    assert all(indices.gini == pytest.approx(0, abs=1e-12) for indices in report.indices)
    assert all(indices.relative_unfairness == 1 for indices in report.indices)
    assert report.notes == ()


def test_sites_without_a_figure_are_named_and_left_out() -> None:
    report = fairness_report(version("2", {"a": 1.0, "b": None, "c": math.nan, "d": 1.0}))
    (found,) = report.indices
    assert found.missing == ("b", "c")
    assert any("2 of 4 sites have no held-out loss" in note for note in report.notes)


def test_few_sites_are_said_to_be_few() -> None:
    three = fairness_report(version("1", dict.fromkeys("abc", 1.0)))
    assert any("figures of 3 sites only" in note for note in three.notes)
    assert any("one site only" in note for note in fairness_report(version("1", {"a": 1.0})).notes)
    assert fairness_report(version("1", dict.fromkeys("abcde", 1.0))).notes == ()


def test_nothing_known_is_nothing_judged() -> None:
    report = fairness_report(version("1", {"a": None}))
    assert report.indices == ()
    assert "nothing to compare" in report.notes[0]
    assert "nothing to compare" in fairness_page(report)


def test_the_champion_stands_beside_it() -> None:
    champion = version("1", {"a": 1.0, "b": 4.0})
    report = fairness_report(version("2", {"a": 1.0, "b": 3.0}), champion)
    changes = {change.index: change for change in report.changes}
    assert report.champion_version == "1"
    assert changes["relative_unfairness"].better and changes["relative_unfairness"].champion == 4.0
    assert not fairness_report(champion, champion).changes


def test_the_page_holds_every_index_and_escapes_names() -> None:
    page = fairness_page(fairness_report(version("2", {"a": 1.0, "b": 3.0}), version("1", {"a": 1.0, "b": 4.0})))
    for text in ("Gini coefficient", "Palma", "Atkinson", "champion (version 1)", "<svg", "</html>"):
        assert text in page
    assert "<script" not in page and "http://www.w3.org" in page


def test_the_pictures_are_pictures_and_the_same_again() -> None:
    report = fairness_report(version("2", {"a": 1.0, "b": 3.0, "c": 2.0}))
    svg, png = lorenz_chart(report, "svg"), lorenz_chart(report, "png")
    root = ElementTree.fromstring(svg)
    assert root.tag.endswith("svg")
    assert "held-out loss" in svg.decode()
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert lorenz_chart(report, "svg") == svg
