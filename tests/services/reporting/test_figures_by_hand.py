"""Numbers that a reader sees: each under its own name, in a report where no two of them are alike."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from html import unescape
from itertools import permutations

import numpy as np
import pytest

from services.contracts.evaluation.calibration import CalibrationFacts
from services.contracts.evaluation.scores import ErrorInterval
from services.contracts.history.run import RoundRecord, Run
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.machines.target import Target
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.problems.tuning_curve import TunedCandidate
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.report import SensorCurve
from services.contracts.versions.version_facts import SiteScore
from services.reporting.calibration_rows import calibration_rows
from services.reporting.curve_chart import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, curve_chart
from services.reporting.fairness_page import fairness_page
from services.reporting.fairness_report import fairness_report
from services.reporting.generalisation import lifts_tried, version_bound
from services.reporting.html import figure
from services.reporting.model_report import model_report
from services.reporting.report_page import report_page
from services.reporting.several_classes import several_classes
from services.reporting.tuning_section import HEAD, tuning_chart, tuning_rows
from tests.api.conftest import a_curve
from tests.versions import a_version

WEAR = Target(name="wear", unit="mm", low=1.0, high=5.0)


def named(page: str) -> dict[str, str]:
    """Values of tables whose first column names the rows."""
    rows = re.findall(r"<tr><td[^>]*>(.*?)</td><td[^>]*>(.*?)</td></tr>", page)
    return {unescape(name): unescape(value) for name, value in rows}


def columns(page: str, caption: str) -> dict[str, tuple[str, ...]]:
    """Columns of the table with a caption, by their heads."""
    table = page[page.index(f"<caption>{caption}</caption>") :]
    table = table[: table.index("</table>")]
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", table)[1:]]
    return dict(zip(re.findall(r'<th scope="col">(.*?)</th>', table), zip(*rows, strict=True), strict=True))


def test_the_verdict_and_the_sites_of_a_diagnosis(
    version: ModelVersion, run: Run, rounds: tuple[RoundRecord, ...]
) -> None:
    sites = tuple(
        site.model_copy(update={"worst_weight": weight}) for site, weight in zip(version.sites, (0.4, 0.6), strict=True)
    )
    told = version.model_copy(update={"worst_case_risk": 0.33, "objective": 0.31, "lower_bound": 0.3, "sites": sites})
    page = report_page(model_report(told, run, rounds))
    assert "The worst-case risk of the model is 0.33." in page
    summed = told.model_copy(update={"reveal": "sums"})
    # Plants tell it from above then, in steps: "is 0.33" beside "it is at most 0.31" could not both be true.
    assert "The worst-case risk of the model is at most 0.33." in report_page(model_report(summed, run, rounds))
    assert "it is at most 0.31, and no model of its kind has one below 0.3:" in page
    assert named(page)["F-1, all held-out parts"] == "0.9" and named(page)["F-1, worst site"] == "0.8"
    table = columns(page, "Sites")
    assert table["weight"] == ("0.75", "0.25", "0")[: len(table["site"])]
    assert table["worst weight"][:2] == ("0.4", "0.6") and table["F-1"][:2] == ("0.95", "0.8")
    assert (table["late"][1], table["refused"][1], table["absent"][1]) == ("0", "1", "1")
    assert (table["bytes to site"][1], table["bytes from site"][1]) == ("1500", "890")


def test_a_report_says_of_what_the_ball_is_under_a_lift(
    version: ModelVersion, run: Run, rounds: tuple[RoundRecord, ...]
) -> None:
    report = model_report(version, run, rounds)
    spec = TrainingSpec.model_validate({"lift": {"kind": "nystrom", "components": 4, "bandwidth": 0.5}})
    lifted = report.model_copy(update={"certificate": report.certificate.model_copy(update={"spec": spec})})
    assert "The ball is one of lifted features" in named(report_page(lifted))["ball"]
    assert "ball" not in named(report_page(report))


def test_the_scores_of_a_target(run: Run) -> None:
    kind = AssetType(
        name="triplex-pump", features=(Feature(name="flow", unit="l/min", low=0.0, high=80.0),), target=WEAR,
        fault_classes=(FaultClass(name="healthy", severity=0), FaultClass(name="leak", severity=3)),
    )
    spec = TrainingSpec.model_validate({"loss": {"name": "pinball", "quantile": 0.75}})
    around = ErrorInterval.implied(spec.loss.loss, WEAR, 0.02, 0.9)
    sites = (
        SiteScore(site_id="plant-a", weight=0.75, radius=0.001, mae=0.21, r2=0.9, coverage=0.97),
        SiteScore(site_id="plant-b", weight=0.25, radius=0.004, mae=0.52, r2=0.6, coverage=0.95),
    )
    version = a_version(
        kind, np.array([[1.0, -0.5]]), spec=spec, error_interval=around, mae=0.25, rmse=0.35, r2=0.8, pinball=0.11,
        coverage=0.96, sites=sites,
    )
    page = report_page(model_report(version, run, ()))
    told = named(page)
    assert told["mean absolute error, all held-out parts"] == "0.25" and told["root mean squared error"] == "0.35"
    assert told["mean absolute error, worst site"] == "0.52" and told["R2"] == "0.8"
    assert told["mean pinball loss"] == "0.11" and told["held-out targets inside it"] == "0.96"
    # Markov: the loss is above 0.02 / 0.1 one time in ten, 3/4 of what the target lies above, 1/4 of what below.
    assert told["interval of confidence 0.9"].startswith("from 3.2 mm below to 1.067 mm above the estimate")
    table = columns(page, "Sites")
    assert (table["mean error (mm)"], table["R2"], table["coverage"]) == (
        ("0.21", "0.52"), ("0.9", "0.6"), ("0.97", "0.95")
    )
    assert "cost of moving a target" in table and "cost of a flip" not in page


def test_indices_of_plants_of_unlike_weight(version: ModelVersion) -> None:
    losses, weights = (1.0, 2.0, 3.0, 4.0, 10.0), (0.5, 0.2, 0.1, 0.1, 0.1)
    sites = tuple(
        SiteScore(site_id=f"plant-{k}", weight=weight, radius=0.1, loss=loss)
        for k, (loss, weight) in enumerate(zip(losses, weights, strict=True))
    )
    (found,) = fairness_report(version.model_copy(update={"sites": sites, "worst_case_risk": None})).indices
    assert found.mean == pytest.approx(0.5 + 0.4 + 0.3 + 0.4 + 1.0), "each counts by its weight"
    assert found.atkinson == pytest.approx(1.0 - 240.0**0.2 / 4.0), "one less the geometric mean over the mean"
    assert (found.worst_share, found.best_share) == (pytest.approx(10.0), pytest.approx(1.0))


def test_the_bound_on_new_data_takes_alpha_for_a_beta_that_is_not_given(version: ModelVersion) -> None:
    rows, given = [2000] * 5, {"phi": 0.5, "alpha": 0.6}
    found, same, less = (version_bound(version, rows, given | more) for more in ({}, {"beta": 0.6}, {"beta": 0.2}))
    assert found is not None and same is not None and less is not None
    assert found.added == same.added != less.added


def test_the_bound_is_over_the_mixtures_that_relative_fairness_weighs(version: ModelVersion, run: Run) -> None:
    """Sites of unlike weights have unlike caps, ``weight / alpha``; those of equal shares are another set."""
    weights, given = [0.6, 0.3, 0.1], {"phi": 0.5, "alpha": 0.8, "beta": 0.8}
    members = tuple(
        site.model_copy(update={"site_id": f"plant-{k}", "n_samples": 2000, "weight": weight})
        for k, (site, weight) in enumerate(zip([run.members[0]] * 3, weights, strict=True))
    )
    plan = run.plan.model_copy(update={"method": "relative-fairness", "parameters": given})
    found = fairness_report(version, None, run.model_copy(update={"plan": plan, "sites": members})).generalisation
    assert found is not None and found.skewness == pytest.approx(3.0 * max_of_squares(weights, 0.8, 0.5))
    alike = version_bound(version, [2000] * 3, given)
    assert alike is not None and found.skewness != pytest.approx(alike.skewness)
    many = version_bound(version, [2000] * 9, given, weights=[0.2] + [0.1] * 8)
    # Caps .25 and eight of .125: squares are at most .25 * .25 + .75 * .125, for a and for b.
    assert many is not None and many.skewness == pytest.approx(9.0 * 1.25 * 0.15625 / 0.25)
    assert version_bound(version, [2000] * 3, given | {"choose_after": 5.0}, weights=weights) is None, "nor is phi"


def max_of_squares(weights: list[float], share: float, phi: float) -> float:
    """``max ||lambda||^2`` over Lambda_phi, by all orders in which A and B are filled up to ``weight / share``."""
    def members() -> list[list[float]]:
        found = []
        for order in permutations(range(len(weights))):
            left, member = 1.0, [0.0] * len(weights)
            for g in order:
                member[g] = min(left, weights[g] / share)
                left -= member[g]
            found.append(member)
        return found

    return max(
        sum(((a - phi * b) / (1.0 - phi)) ** 2 for a, b in zip(worst, best, strict=True))
        for worst in members() for best in members()
    )


def test_the_lifts_that_a_tuning_chose_among_share_the_doubt_of_the_bound(version: ModelVersion, run: Run) -> None:
    curve = a_curve()
    lifts = [None, None, {"kind": "spline", "segments": 3}, {"kind": "spline", "segments": 6}]
    candidates = tuple(
        TunedCandidate.model_validate({"radius": 1.0 + k, "label_flip_cost": 1.0, "lift": lift})
        for k, lift in enumerate(lifts)
    )
    stated = {"tuned": curve.model_copy(update={"candidates": candidates}), "tuning": {"radius": (1.0,)}}
    plan = run.plan.model_copy(update=stated)
    assert lifts_tried(run.plan) == 1 and lifts_tried(plan) == 3, "radii are of one class of planes"
    assert lifts_tried(plan.model_copy(update={"tuning": "auto"})) == 5, "the rows said which of its four it tries"
    rows, size = [2000] * 5, version.weights.shape[1]
    found, sure = version_bound(version, rows, {}, 3), version_bound(version, rows, {})
    assert found is not None and sure is not None and (found.delta, found.lifts) == (0.05, 3)
    complexity = 4.0 * math.sqrt(size * (1.0 + math.log(10_000 / size)))
    doubt = math.sqrt(4.0 * math.log1p(2.0 * 2.0 / 0.01) + math.log(3.0 / 0.05))
    assert found.added == pytest.approx(0.01 + math.sqrt(5.0 / 20_000) * (complexity + doubt))
    assert found.added > sure.added
    members = tuple(site.model_copy(update={"n_samples": 2000}) for site in run.members)
    whole = run.model_copy(update={"plan": plan, "sites": members})
    report = fairness_report(version, None, whole)
    assert report.generalisation is not None and report.generalisation.lifts == 3
    assert "for 3 lifts of which a tuning chose one" in fairness_page(report)
    assert "a tuning chose" not in fairness_page(report.model_copy(update={"generalisation": sure}))


def test_a_candidates_score_and_its_standard_error_stand_and_are_drawn_where_they_are() -> None:
    made = a_curve()
    scores = [each.model_copy(update={"standard_error": 0.008, "gap": 0.004}) for each in made.candidates]
    curve = made.model_copy(update={"candidates": tuple(scores)})
    first = dict(zip(HEAD, tuning_rows(curve)[0], strict=True))
    assert (first["held-out score"], first["standard error"], first["folds"], first["gap"]) == (
        "0.8", "0.008", "3", "0.004"
    )
    root = ElementTree.fromstring(tuning_chart(curve))
    marks = [float(each.attrib["cx"]) for each in root.iter() if each.tag.endswith("circle")]
    bars = [each.attrib for each in root.iter() if each.tag.endswith("line")]
    by_score = (marks[1] - marks[0]) / (0.9 - 0.8)
    for mark, bar in zip(marks, bars, strict=True):
        ends = [float(bar["x1"]), float(bar["x2"])]
        assert ends == pytest.approx([mark - 0.008 * by_score, mark + 0.008 * by_score], abs=0.2)
    written = {each.text: float(each.attrib["x"]) for each in root.iter() if each.attrib.get("text-anchor") == "middle"}
    assert written == pytest.approx({"0.8": marks[0], "0.9": marks[1]}, abs=0.1)


def test_a_calibration_says_what_is_covered_of_whom_and_from_how_many_rows() -> None:
    facts = CalibrationFacts(
        kind="absolute", coverage=0.9, available=True, shift=0.02, over="every group", groups=4, n_test=120, missing=1,
        most_coverage=0.96, scale=None, half_width=0.3,
    )
    told = dict(calibration_rows(facts, "mm"))
    assert told["conformal intervals"].startswith("coverage 0.9 at every plant or cohort that counted, also 0.02 away")
    assert told["from held-out rows"] == "120 of 4 groups; 1 plants counted nothing"
    assert told["largest coverage that they are good for"] == "0.96"
    assert told["half width of the conformal interval"] == "0.3 mm"
    unlike = "measurements unlike the held-out ones"
    assert unlike not in told, "of an earlier report it is not known"
    for tells, word in ((True, "at most 5 in 100"), (False, "never told: it takes 39 held-out rows a plant")):
        for available in (True, False):
            known = facts.model_copy(update={"tells_unlike": tells, "available": available})
            assert word in dict(calibration_rows(known, "mm"))[unlike]


def test_a_curve_is_drawn_from_corner_to_corner_of_its_axes() -> None:
    ends, heights = (10.0, 45.0, 80.0), (-1.0, 0.0, 3.0)
    line = SensorCurve(sensor="flow", unit="l/min", fault_class="", readings=ends, heights=heights)
    root = ElementTree.fromstring(curve_chart([line], -1.0, 3.0))
    (points,) = [each.attrib["points"] for each in root.iter() if each.tag.endswith("polyline")]
    floor, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    wanted = [(LEFT, floor), ((LEFT + right) / 2, floor - (floor - TOP) / 4), (right, TOP)]
    drawn = [[float(each) for each in pair.split(",")] for pair in points.split()]
    np.testing.assert_allclose(drawn, wanted, atol=0.06)


def test_three_classes_are_said_to_be_several_problems_and_two_are_not() -> None:
    assert "sums over 3 problems" in several_classes(TrainingSpec(), 3) and several_classes(TrainingSpec(), 2) == ""


def test_a_figure_has_four_digits() -> None:
    said = [figure(each) for each in (0.123456, 12345.6, 7, None, float("inf"), float("nan"))]
    assert said == ["0.1235", "1.235e+04", "7", "not known", "infinite", "not known"]
