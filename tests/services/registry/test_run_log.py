"""What stands in MLflow of a run, by hand: parameters, figures of the plants, and whose report a file is."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.contracts.documents import to_plain
from services.contracts.errors import ConflictError, InvalidInputError
from services.contracts.problems.training_spec import RadiusRule, TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.report import CertificateReport, ModelReport
from services.contracts.versions.version_facts import SiteScore
from services.registry.run_log import final_metrics, metric_rows, parameters, read_report, write_report_files
from tests.versions import START, a_round

MakeVersion = Callable[..., ModelVersion]


def sites(**figures: tuple[float | None, float | None]) -> tuple[SiteScore, ...]:
    """Sites by name, each with its loss and its worst-case risk."""
    return tuple(
        SiteScore(site_id=name, weight=0.5, radius=0.1, loss=loss, worst_case_risk=risk)
        for name, (loss, risk) in figures.items()
    )


def report(version: ModelVersion, **changes: Any) -> ModelReport:
    held = {name: getattr(version, name) for name in CertificateReport.model_fields if name != "gap"}
    said = {name: getattr(version, name) for name in ModelReport.COPIED}
    return ModelReport.model_validate(said | {
        "version": "", "sites": [dict(site) for site in version.sites], "wanted_gap": 1e-3, "seconds": 0.5,
        "asset_type": version.asset_type.name, "fingerprint": version.asset_type.fingerprint, "promotable": True,
        "certificate": CertificateReport.model_validate(held | {"gap": version.certified_gap}),
    } | changes)


def test_the_radius_is_told_by_what_the_plan_gave(make_version: MakeVersion) -> None:
    aimed = TrainingSpec(radius=RadiusRule(rule="confidence", confidence=0.95))
    told = [parameters(make_version(spec=spec)) for spec in (TrainingSpec(), aimed)]
    assert [each["radius_rule"] for each in told] == ["samples", "confidence"]
    assert [each["radius_value"] for each in told] == ["10.0", "0.95"]
    assert (told[0]["label_flip_cost"], told[0]["fit_intercept"], told[0]["target"]) == ("1.0", "true", "none")


def test_indices_are_of_the_sites_whose_figures_are_known(make_version: MakeVersion) -> None:
    """Losses 1 and 3: of all pairs the mean distance is 1, by twice the mean 2 is 1/4."""
    found = final_metrics(make_version(sites=sites(a=(1.0, 0.2), b=(3.0, math.inf), c=(None, -0.1))))
    assert found["fairness/loss/gini"] == pytest.approx(0.25) and found["fairness/loss/worst_site"] == 3.0
    assert not any(name.startswith("fairness/worst_case_risk") for name in found), "one figure has no spread"
    assert "site/b/worst_case_risk" not in found and found["site/a/worst_case_risk"] == 0.2
    nothing = final_metrics(make_version(sites=sites(a=(0.0, 0.0), b=(0.0, 0.0))))
    assert not any(name.startswith("fairness/") for name in nothing), "of nothing there are no shares"


def test_metrics_bear_the_moments_of_their_rounds(make_version: MakeVersion) -> None:
    version = make_version()
    rows = metric_rows(version, [a_round(version.run_id, number) for number in (1, 2)])
    first = int(START.timestamp() * 1000)
    by_round = {(name, step): (value, at) for name, value, at, step in rows}
    assert by_round["upper", 1] == (1.0, first + 1000) and by_round["upper", 2] == (0.5, first + 2000)
    assert ("lower", 1) not in by_round and ("gap", 1) not in by_round and by_round["lower", 2][0] == 0.2
    made = int(version.created_at.timestamp() * 1000)
    assert by_round["certified_gap", version.rounds] == (version.certified_gap, made)


def test_a_report_is_of_the_run_and_the_certificate_that_its_version_has(make_version: MakeVersion) -> None:
    version = make_version().model_copy(update={"version": "7"})
    text = json.dumps(to_plain(report(version)))
    found = read_report(text, version)
    assert found is not None and found.version == "7"
    assert read_report("{", version) is None and read_report('{"text": 1}', version) is None
    for name, other in (("run_id", "f" * 32), ("rounds", 9), ("worst_case_risk", 0.1), ("lower_bound", 0.1),
                        ("certified_gap", 0.1)):
        with pytest.raises(ConflictError, match="report of version 7 of model"):
            read_report(text, version.model_copy(update={name: other}))


@pytest.mark.parametrize("forged", [{"f1": 0.999}, {"mae": 0.1}, {"method": "pooled"}])
def test_a_report_says_the_scores_that_its_version_has(make_version: MakeVersion, forged: dict[str, Any]) -> None:
    version = make_version(sites=sites(a=(1.0, 0.2), b=(3.0, math.inf), c=(None, math.nan)))
    assert read_report(json.dumps(to_plain(report(version))), version) is not None
    with pytest.raises(ConflictError, match="is not the one that was registered"):
        read_report(json.dumps(to_plain(report(version)) | forged), version)


@pytest.mark.parametrize("forged", [{"loss": 0.1}, {"f1": 0.999}, {"radius": 9.0}, {"site_id": "x"}])
def test_a_report_says_of_each_site_what_its_version_says(make_version: MakeVersion, forged: dict[str, Any]) -> None:
    version = make_version(sites=sites(a=(1.0, 0.2), b=(3.0, 0.4)))
    plain = to_plain(report(version))
    plain["sites"][1] |= forged
    with pytest.raises(ConflictError, match="is not the one that was registered"):
        read_report(json.dumps(plain), version)


@pytest.mark.parametrize("name", ["report.json", "", ".", "..", "../x", "/x", "a/b"])
def test_an_attachment_takes_the_place_of_nothing(tmp_path: Path, make_version: MakeVersion, name: str) -> None:
    with pytest.raises(InvalidInputError, match="plain file name other than report.json"):
        write_report_files(tmp_path, report(make_version()), {name: b"text"})
    assert json.loads((tmp_path / "report.json").read_text())["promotable"] is True
