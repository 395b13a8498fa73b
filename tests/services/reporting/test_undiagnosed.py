"""A class that a version never says stands in the report, on its page, and with the command."""

from __future__ import annotations

from services.contracts.history.run import Run
from services.contracts.versions.model_version import ModelVersion
from services.reporting.model_report import model_report
from services.reporting.report_page import report_page
from services.reporting.undiagnosed import undiagnosed

CLASSES = ("healthy", "leak", "wear")


def test_a_class_with_rows_and_without_a_diagnosis_is_named_with_its_rows() -> None:
    (sentence,) = undiagnosed(CLASSES, ((20, 3, 0), (4, 9, 0), (6, 1, 0)))
    assert "diagnosed as wear, though 7 are" in sentence


def test_one_diagnosis_is_enough_even_a_wrong_one_and_a_class_without_rows_is_no_lack() -> None:
    assert undiagnosed(CLASSES, ((20, 3, 1), (4, 9, 0), (6, 1, 0))) == ()
    assert undiagnosed(CLASSES, ((20, 3, 0), (4, 9, 0), (0, 0, 0))) == ()
    assert undiagnosed(CLASSES, None) == ()


def test_counts_of_all_sites_stand_in_the_report_where_no_site_told_its_own(version: ModelVersion, run: Run) -> None:
    summed = version.model_copy(update={"confusion": ((0, 30), (0, 70))})
    report = model_report(summed, run, ())
    assert all(site.confusion is None for site in report.sites)
    assert report.confusion == ((0, 30), (0, 70)) and report.recall == (0.0, 1.0)
    page = report_page(report)
    assert "diagnosed as healthy, though 30 are" in page and "diagnosed as leak, though" not in page
    said = version.model_copy(update={"confusion": ((29, 1), (0, 70))})
    assert "though" not in report_page(model_report(said, run, ()))
