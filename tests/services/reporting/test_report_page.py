from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pytest

from services.contracts.history.run import ExcludedSite, RoundPoint, RoundRecord, Run
from services.contracts.problems.coupling import Coupling
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.report import GateResult
from services.contracts.versions.version_facts import ConvexPart
from services.reporting.gap_chart import HEIGHT, WIDTH, gap_chart
from services.reporting.model_report import model_report
from services.reporting.report_page import report_attachments, report_page
from services.reporting.site_tables import MOST_MISSED

SVG = "{http://www.w3.org/2000/svg}"


def point(number: int, gap: float, fresh_weight: float = 1.0) -> RoundPoint:
    return RoundPoint(
        round=number, upper=1.0, lower=0.0, gap=gap, fresh_weight=fresh_weight, seconds=0.1, overhead_seconds=0.01
    )


def marks(svg: str) -> list[tuple[float, float, str]]:
    root = ElementTree.fromstring(svg)
    return [(float(c.attrib["cx"]), float(c.attrib["cy"]), c.attrib["fill"]) for c in root.iter(f"{SVG}circle")]


def test_marks_go_right_and_down_and_are_hollow_where_a_site_was_away() -> None:
    found = marks(gap_chart([point(1, math.inf), point(2, 0.5), point(3, 0.05, 0.75), point(4, 0.005)], 1e-3))
    assert [fill for _, _, fill in found] == ["black", "white", "black"]
    (x2, y2, _), (x3, y3, _), (x4, y4, _) = found
    assert x2 < x3 < x4 and y2 < y3 < y4
    assert y3 - y2 == pytest.approx(y4 - y3, abs=0.11)


@pytest.mark.parametrize(
    "gaps",
    [[], [math.inf], [math.nan], [0.0], [1.0], [1e-3], [0.5, 0.0], [2.0, 1e-9], [10 ** (-k / 40) for k in range(400)]],
)
def test_every_mark_and_word_is_inside_the_picture(gaps: list[float]) -> None:
    svg = gap_chart([point(number, gap) for number, gap in enumerate(gaps, start=1)], 1e-3)
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        for name, limit in (("x", WIDTH), ("x1", WIDTH), ("cx", WIDTH), ("y", HEIGHT), ("y1", HEIGHT), ("cy", HEIGHT)):
            if name in element.attrib:
                assert 0 <= float(element.attrib[name]) <= limit
    assert len(marks(svg)) == sum(math.isfinite(gap) for gap in gaps)
    assert ("no round has a finite gap" in svg) is not any(math.isfinite(gap) for gap in gaps)


def test_scores_that_are_not_known_say_why(version: ModelVersion, run: Run, rounds: tuple[RoundRecord, ...]) -> None:
    told = "no held-out rows could be counted"
    assert told not in report_page(model_report(version, run, rounds))
    uncounted = version.model_copy(update={"f1": None, "confusion": None})
    assert told in report_page(model_report(uncounted, run, rounds))


class Structure(HTMLParser):
    """Checks that elements close in order, and keeps the text and the addresses that would be fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in {"meta", "br"}:
            self.open.append(tag)
        self.fetched += [value or "" for name, value in attrs if name in {"src", "href", "srcset", "data"}]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [value or "" for name, value in attrs if name in {"src", "href"}]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def parse(page: str) -> Structure:
    structure = Structure()
    structure.feed(page)
    structure.close()
    assert structure.open == []
    return structure


def test_the_page_stands_alone_and_says_it_all(
    version: ModelVersion, run: Run, rounds: tuple[RoundRecord, ...]
) -> None:
    gates = [GateResult(name="min_f1", wanted=0.95, found=None, holds=False, reason="no site sent a held-out score")]
    page = report_page(model_report(version.model_copy(update={"version": "7"}), run, rounds, gates))
    found = parse(page)
    assert found.fetched == [] and "<script" not in page and "@import" not in page and "url(" not in page
    for wanted in (
        "Model triplex-pump version 7", "certified relative gap 0.", "75.0% of the sites' weight", "plant-c", "too few",
        "FAILS", "no site sent a held-out score", "infinite", "Not every gate holds.", "<no data> & so on",
    ):
        assert wanted in found.text, wanted


def test_a_site_that_was_away_for_too_long_is_not_said_to_have_lied(
    version: ModelVersion, run: Run, rounds: tuple[RoundRecord, ...]
) -> None:
    away = ExcludedSite(site_id="plant-x", round=2, code="absent", reason="it made no masks for 60 s")
    page = report_page(model_report(version.model_copy(update={"excluded": (away,)}), run, rounds, []))
    text = parse(page).text
    assert "it made no masks for 60 s" in text and "cannot be true" not in text


def test_a_report_without_rounds_gates_or_number_is_a_page_too(version: ModelVersion, run: Run) -> None:
    found = parse(report_page(model_report(version.model_copy(update={"f1": None, "sites": ()}), run, ())))
    assert "No gate was asked for." in found.text and "not known" in found.text and "version" not in found.text[:60]


def test_what_the_method_says_and_the_convex_part_are_on_the_page(version: ModelVersion, run: Run) -> None:
    plain = parse(report_page(model_report(version, run, ()))).text
    assert "what the method says" not in plain and "convex part" not in plain
    part = ConvexPart(upper=0.25, lower=0.2, gap=0.2)
    told = version.model_copy(update={"note": "phi <0.2>: need not close", "convex_part": part})
    report = model_report(told, run, ())
    assert (report.certificate.note, report.certificate.convex_part) == (told.note, part)
    found = parse(report_page(report)).text
    assert "phi <0.2>: need not close" in found and "from 0.2 to 0.25, relative gap 0.2: tells a critical" in found


def test_what_is_proven_of_planes_before_their_coupling_is_said_of_those(version: ModelVersion, run: Run) -> None:
    found = {"objective": 0.2, "before": 0.3, "at_least": 0.1, "rounds": 2}
    coupling = Coupling(matrix=((1.0, 0.0), (0.0, 1.0)), offsets=(0.0, 0.0), **found)
    for made, said in ((None, "it is at most"), (coupling, "that of the planes before their coupling is at most")):
        report = model_report(version, run, ())
        certificate = report.certificate.model_copy(update={"coupling": made})
        shown = parse(report_page(report.model_copy(update={"certificate": certificate}))).text
        assert f" s) {said}" in " ".join(shown.split())


@pytest.mark.parametrize("network", [None, {"hidden": 3}])
def test_of_a_loss_of_all_scores_no_term_of_a_ball_is_told(
    version: ModelVersion, run: Run, network: dict[str, int] | None
) -> None:
    """It is trained without one: flip cost, radius and worst-case risk are none of its terms."""
    ballless = TrainingSpec.model_validate({"loss": "cross_entropy", "network": network})
    soft = version.model_copy(update={"spec": ballless, "worst_case_risk": None})
    of_a_ball = ("cost of a label flip", "cost of a flip", ">radius<", ">worst-case risk<", "risk of the model is")
    with_balls, without = (report_page(model_report(each, run, ())) for each in (version, soft))
    assert [term in with_balls for term in of_a_ball] == [True] * len(of_a_ball)
    assert [term in without for term in of_a_ball] == [False] * len(of_a_ball)
    assert "losses of the rows themselves are minimised" in without and "transport norm" in without
    assert ("no worst-case risk is stated" in without) == (network is None)


def test_long_lists_of_missed_rounds_are_cut_and_say_so(
    version: ModelVersion, run: Run, rounds: tuple[RoundRecord, ...]
) -> None:
    missed = next(record for record in rounds if record.round == 2)
    many = [missed.model_copy(update={"round": number}) for number in range(1, MOST_MISSED + 51)]
    assert "and 50 more, in report.json" in report_page(model_report(version, run, many))


def test_attachments(version: ModelVersion, run: Run, rounds: tuple[RoundRecord, ...]) -> None:
    found = report_attachments(model_report(version, run, rounds))
    assert sorted(found) == ["gap.svg", "report.html"]
    ElementTree.fromstring(found["gap.svg"])
