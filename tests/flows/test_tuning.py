"""Tuning through real NATS, a real database and a real registry: before the rounds, on sums and with single answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services.contracts.model_version import ModelVersion
from services.reporting.report_page import report_page

GRID = {"radius": [1.0, 10.0], "label_flip_cost": [1.0, 4.0], "lifts": ["none", {"kind": "spline", "segments": 3}],
        "folds": 3}


@pytest.mark.parametrize("reveal", ["sums", "each site"])
def test_a_plan_with_tuning_trains_with_the_terms_that_it_chose(works: Any, reveal: str) -> None:
    plan = works.plan(f"tuned-{reveal.replace(' ', '-')}", reveal=reveal, tuning=GRID)
    run, trained, version = works.train(plan)
    curve = version.tuning
    assert curve is not None and len(curve.candidates) == 8 and curve.terms.folds == 3
    assert curve.rounds <= curve.budget * curve.reference_rounds
    assert curve.numbers <= curve.budget * curve.reference_numbers
    assert curve.bytes_sent > 8 * curve.numbers and curve.terms.score is not None and curve.terms.score > 0.75
    assert trained.certificate.gap <= 1e-3 and version.f1 is not None and version.f1 > 0.8
    terms = curve.terms
    assert version.spec.lift == terms.lift and version.spec.label_flip_cost == terms.label_flip_cost
    assert version.spec.radius.value == pytest.approx(10.0 / terms.radius)
    assert all(site.n_samples * site.radius == pytest.approx(terms.radius / 10.0) for site in run.sites)
    kept = works.context.registry.get(version.name, version.version)
    assert kept.tuning == curve, "the curve stands in the registry"
    page = report_page(works.context.registry.report(kept))
    assert "How the terms were chosen" in page and curve.why in page and page.count("<circle") >= 8
    ledger = works.context.settings.home / "plants" / "plant-1" / "ledger.jsonl"
    lines = [line for line in map(json.loads, ledger.read_text().splitlines()) if line.get("run") == run.run_id]
    mine = [line for line in lines if line["kind"] == "tune"]
    assert len(mine) == curve.rounds
    if reveal == "sums":
        assert all(not line["fields"] for line in mine), "nothing of the plant's own leaves"


def test_a_version_of_before_tuning_is_the_document_that_was_signed(works: Any) -> None:
    _, _, version = works.train(works.plan("untuned", max_rounds=2))
    document = version.to_document()
    assert version.tuning is None and "tuning" not in document
    assert ModelVersion.from_document(document).to_document() == document
