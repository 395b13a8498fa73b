"""Fairness reports: indices by hand, missing figures, the champion beside it, and the page."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

import numpy as np
import pytest

from models.methods.protocol import WORST_CASE
from services.contracts.evaluation.fairness import GeneralisationBound
from services.contracts.history.run import Run
from services.contracts.problems.training_spec import RadiusRule, TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.version_facts import SiteScore
from services.plant_simulator.assets import builtin_asset_type
from services.reporting.fairness_page import fairness_page, index_columns
from services.reporting.fairness_report import fairness_report
from services.reporting.generalisation import version_bound


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


def test_the_transformed_curve_is_the_lorenz_curve_less_half_the_sites() -> None:
    (found,) = fairness_report(version("2", {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0, "e": 10.0})).indices
    points = [(point.sites, point.losses, point.transformed) for point in found.lorenz]
    assert all(c == pytest.approx(b - a / 2) for a, b, c in points) and points[-1][2] == 0.5
    area = np.trapezoid([c for _, _, c in points], [a for a, _, _ in points])
    assert found.gini == pytest.approx(0.5 - 2 * area), "not 1 - 2 area, as printed beside RF Figure 4"


def test_what_is_added_on_new_data_is_theorem_4_by_hand() -> None:
    trained = version("2", dict.fromkeys("abcde", 1.0))
    found = version_bound(trained, [2000, 1500, 1800, 4000, 1500], {})
    size, rows = trained.weights.shape[1], 5 * 1500
    # Delta_.2 over five sites is the simplex: s = 5 (.8^2 + 4 (.2)^2) + 1, sum norm 1.
    covering = 4 * math.log1p(2 * 2 / 0.01)
    complexity = 4 * math.sqrt(size * (1 + math.log(rows / size)))
    by_hand = 0.01 + math.sqrt(5.0 / (2 * rows)) * (complexity + math.sqrt(covering - math.log(0.05)))
    assert found is not None and (found.rows_per_site, found.skewness) == (1500, pytest.approx(5.0))
    assert found.added == pytest.approx(by_hand)
    more = version_bound(trained, [20000] * 5, {})
    wider = version_bound(trained, [1500] * 5, {"phi": 0.5, "alpha": 0.2, "beta": 0.2})
    assert more is not None and wider is not None and more.added < found.added < wider.added


def test_without_rows_or_for_a_target_there_is_no_bound(run: Run) -> None:
    trained = version("2", dict.fromkeys("abc", 1.0))
    assert version_bound(trained, [], {}) is None and version_bound(trained, [2, 2, 2], {}) is None
    three = trained.model_copy(update={"weights": np.zeros((3, trained.weights.shape[1]))})
    assert version_bound(three, [500] * 3, {}) is None
    report = fairness_report(trained, None, run)
    fewest = min(site.n_samples for site in run.members)
    assert (report.generalisation is None) == (len(run.members) * fewest <= trained.weights.shape[1])
    large = run.model_copy(
        update={"sites": tuple(site.model_copy(update={"n_samples": 10**6}) for site in run.sites)}
    )
    assert "Theorem 4" in fairness_page(fairness_report(trained, None, large))
    assert "Theorem 4" not in fairness_page(fairness_report(trained))


def test_of_a_network_which_is_no_plane_there_is_no_bound() -> None:
    """Its parameters stand in one row, as those of a plane between two classes do."""
    trained = version("2", dict.fromkeys("abc", 1.0))
    spec = TrainingSpec.model_validate({"loss": {"name": "cross_entropy"}, "network": {"hidden": 3}})
    inputs, classes = len(trained.asset_type.features), len(trained.asset_type.fault_classes)
    weights = np.zeros((1, 3 * (inputs + 1) + classes * (3 + 1)))
    assert version_bound(trained.model_copy(update={"weights": weights}), [10**6] * 3, {}) is not None
    assert version_bound(trained.model_copy(update={"spec": spec, "weights": weights}), [10**6] * 3, {}) is None


def test_the_champion_stands_beside_it() -> None:
    champion = version("1", {"a": 1.0, "b": 4.0})
    report = fairness_report(version("2", {"a": 1.0, "b": 3.0}), champion)
    changes = {change.index: change for change in report.changes}
    assert report.champion_version == "1"
    assert changes["relative_unfairness"].better and changes["relative_unfairness"].champion == 4.0
    own = fairness_report(champion, version("1", {"a": 1.0, "b": 4.0}))
    assert own.champion_version is None and not own.changes, "no version stands beside itself, read anew or not"
    nearly = fairness_report(champion, version("0", {"a": 1.0 + 4e-16, "b": 4.0 + 4e-15}))
    assert nearly.changes and not any(each.better for each in nearly.changes), "last digits are no progress"
    judged_by_risk, too = version("2", {"a": 1.0, "b": 3.0}, {"a": 0.2, "b": 0.4}), version("1", {"a": 1.0, "b": 4.0})
    assert {change.basis for change in fairness_report(judged_by_risk, too).changes} == {"loss"}, "it has no risks"


SPLINE, FOURIER = {"kind": "spline", "segments": 4}, {"kind": "fourier", "components": 8, "bandwidth": 0.5}


@pytest.mark.parametrize(("terms", "losses_alike", "note"), [
    ({}, True, None),
    ({"lift": SPLINE}, True, None),
    ({"fit_intercept": False}, True, None),
    ({"radius": RadiusRule(value=20)}, True, "over other balls (radius)"),
    ({"label_flip_cost": 2.0, "transport_norm": "l1"}, True, "over other balls (label flip cost, transport norm)"),
    ({"support": "sensor_ranges"}, True, "over other balls (support)"),
    ({"lift": FOURIER}, True, "over other balls (lift)"),
    ({"loss": {"name": "logistic"}}, False, "trained with another loss"),
    ({"multi_class": "crammer_singer"}, False, "trained with another multi_class"),
])
def test_figures_in_another_measure_are_not_told_as_better_or_worse(
    terms: dict[str, object], losses_alike: bool, note: str | None
) -> None:
    """Ratios have no unit and are compared all the same; means and the worst plant's figure are not."""
    figures = dict(zip("abcdef", (0.1, 0.2, 0.3, 0.4, 0.5, 0.6), strict=True))
    champion = version("1", dict(figures), figures)
    found = version("2", dict(figures), figures).model_copy(update={"spec": TrainingSpec.model_validate(terms)})
    report = fairness_report(found, champion)
    compared = {(each.basis, each.index) for each in report.changes}
    assert {("loss", "gini"), ("worst_case_risk", "gini")} <= compared
    assert (("loss", "worst_site") in compared, ("loss", "mean") in compared) == (losses_alike, losses_alike)
    assert (("worst_case_risk", "worst_site") in compared) == (note is None)
    notes = [each for each in report.notes if "in another measure than these" in each]
    assert (len(notes) == 0) if note is None else (note in notes[0])


def test_figures_of_other_classes_are_in_another_measure() -> None:
    champion = version("1", {"a": 1.0, "b": 4.0})
    asset_type = champion.asset_type
    fewer = asset_type.model_copy(update={"fault_classes": asset_type.fault_classes[:-1]})
    report = fairness_report(version("2", {"a": 1.0, "b": 3.0}).model_copy(update={"asset_type": fewer}), champion)
    assert "mean" not in {each.index for each in report.changes}
    assert any("trained with other classes" in each for each in report.notes)


def test_the_page_holds_every_index_and_escapes_names() -> None:
    page = fairness_page(fairness_report(version("2", {"a": 1.0, "b": 3.0}), version("1", {"a": 1.0, "b": 4.0})))
    for text in ("Gini coefficient", "Palma", "Atkinson", "champion (version 1)", "<svg", "</html>"):
        assert text in page
    assert "<script" not in page and "http://www.w3.org" in page


def test_every_index_stands_under_its_name() -> None:
    page = fairness_page(fairness_report(version("2", {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0, "e": 10.0})))
    rows = dict(re.findall(r"<tr><t[hd][^>]*>([^<]+)</t[hd]>\s*<td[^>]*>([\d.]+)</td></tr>", page))
    means = {text: float(value) for text, value in rows.items() if "mean of the" in text or "site" in text}
    assert means == pytest.approx({
        "worst 20 % of the sites by best 20 % (relative unfairness)": 10.0,
        "worst 10 % of the sites by best 40 % (Palma)": 10.0 / 1.5, "mean of the worst 20 % of the sites": 10.0,
        "mean of the best 20 % of the sites": 1.0, "worst site": 10.0, "mean, weighted as the sites are": 4.0,
    }, rel=1e-3)
    assert float(rows["Gini coefficient"]) == pytest.approx(0.4)
    assert float(rows["Atkinson index, infinite aversion"]) == pytest.approx(0.75)


def test_the_page_says_every_figure_of_a_site_under_its_name() -> None:
    report = fairness_report(version("2", {"a": 1.0, "b": 3.0}))
    first = report.sites[0].model_copy(
        update={"weight": 0.11, "worst_weight": 0.22, "worst_case_risk": 0.33, "loss": 0.44, "f1": 0.55, "mae": 0.66}
    )
    for unit, scored in ((None, "0.55"), ("mm", "0.66")):
        page = fairness_page(report.model_copy(update={"sites": (first,), "unit": unit}))
        row = page[page.index("<h2>Sites") if "<h2>Sites" in page else page.index("Sites") :]
        assert re.findall(r"0\.\d\d", row) == ["0.11", "0.22", "0.33", "0.44", scored]


def test_the_page_escapes_what_is_said_and_keeps_the_champion_apart() -> None:
    report = fairness_report(version("2", {"a": 1.0, "b": 3.0}), version("1", {"a": 1.0, "b": 4.0}))
    page = fairness_page(report.model_copy(update={"notes": ("<i>note</i>",), "version": "<b>2"}))
    assert "<i>" not in page and "&lt;i&gt;note" in page and "<b>" not in page
    own, champion = index_columns(report).values()
    assert (own, champion) == (report.indices[0], report.champion_indices[0]) and own.gini != champion.gini


def test_the_bound_on_new_data_is_told_with_the_probability_that_it_holds() -> None:
    bound = GeneralisationBound.model_construct(
        added=0.25, delta=0.05, epsilon=0.2, phi=None, alpha=0.5, lifts=1, rows_per_site=90, vc_dimension=8,
        skewness=1.5,
    )
    report = fairness_report(version("2", {"a": 1.0, "b": 3.0})).model_copy(update={"generalisation": bound})
    page = fairness_page(report)
    assert "at most 0.25 above" in page and "with probability 0.95" in page and "weighs above 2 times" in page
    assert "it says nothing" not in page
    wide = fairness_page(report.model_copy(update={"generalisation": bound.model_copy(update={"added": 1.0})}))
    assert "Above 1 it says nothing" in wide
