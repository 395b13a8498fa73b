"""The terms of a training on the page of its report: how radii were found, and by which lift."""

from __future__ import annotations

from typing import Any

import pytest

from services.contracts.history.run import Run
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.reporting.model_report import model_report
from services.reporting.report_page import report_page
from tests.services.reporting.test_figures_by_hand import named

SPLINE, DIGEST = {"kind": "spline", "segments": 4}, "0123456789abcdef" * 4
TAIL = {"exponent": 2.0, "c1": 1.0, "c2": 1.0, "c3": 1.0}


def told(version: ModelVersion, run: Run, **terms: Any) -> dict[str, str]:
    """The page's table of a version with other terms."""
    report = model_report(version, run, ())
    certificate = report.certificate.model_copy(update={"spec": TrainingSpec.model_validate(terms)})
    return named(report_page(report.model_copy(update={"certificate": certificate})))


@pytest.mark.parametrize(("rule", "said"), [
    ({"rule": "fixed", "value": 0.25}, "fixed, 0.25"), ({"value": 20.0}, "samples, 20"),
    ({"rule": "confidence", "confidence": 0.9}, "by confidence 0.9, estimated by resampling"),
    ({"rule": "confidence", "confidence": 0.9, "tail": TAIL}, "by confidence 0.9, by the given constants"),
])
def test_a_radius_by_resampling_is_said_to_be_estimated(
    version: ModelVersion, run: Run, rule: dict[str, Any], said: str
) -> None:
    assert told(version, run, radius=rule)["radius"] == said


@pytest.mark.parametrize(("lift", "said"), [
    (None, "none"), (SPLINE | {"fingerprint": DIGEST}, "(0123456789abcdef)"), (SPLINE, "(not pinned)"),
])
def test_a_lift_is_told_with_the_digest_that_pins_it(
    version: ModelVersion, run: Run, lift: dict[str, Any] | None, said: str
) -> None:
    assert told(version, run, lift=lift)["lift"].endswith(said)
