"""Calibrated answers through the real services: the plants count, the version keeps it, REST answers with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from flows.publish import promote_if_gates_hold
from models.conformal.grid import counts_at_or_below
from models.conformal.scores import class_scores, own_margins
from models.multiclass import predict_scores
from services.contracts.versions.model_version import ModelVersion
from services.reporting.report_page import report_page
from tests.flows.conftest import SITES
from tests.flows.rest import Ask, asked_as_viewer

SAMPLE = {"flow": 1.0, "pressure": 0.2}


@pytest.fixture(scope="module")
def versions(works: Any) -> dict[str, ModelVersion]:
    """Three runs: each plant seen; masked sums; and a coverage asked that the few held-out rows are not good for."""
    found = {}
    for name, plan in {
        "seen": {"gates": {"max_gap": None}}, "summed": {"reveal": "sums"}, "greedy": {"coverage": 0.99},
    }.items():
        run, _, version = works.train(works.plan(f"calibrated-{name}", max_rounds=12, **plan))
        found[name] = version
        promote_if_gates_hold(works.context, run, version)
    return found


@pytest.fixture(scope="module")
def ask(works: Any, versions: dict[str, ModelVersion]) -> Iterator[Ask]:
    with asked_as_viewer(works.context.settings) as asked:
        yield asked


def test_the_version_holds_what_the_plants_counted_on_their_held_out_rows(
    works: Any, versions: dict[str, ModelVersion]
) -> None:
    """From the rows themselves, which only this test sees: each plant's counts, and their sum under masks."""
    counts, rows = {}, {}
    for name in ("seen", "summed"):
        version = versions[name]
        grid = np.array(version.calibration.grid) if version.calibration else np.zeros(0)
        for site in SITES:
            test = works.dataset(site).test
            scores = class_scores(predict_scores(version.weights, test.features))
            counts[name, site], rows[site] = counts_at_or_below(own_margins(scores, test.classes), grid), len(test)
    seen, summed = versions["seen"].calibration, versions["summed"].calibration
    assert seen is not None and summed is not None
    assert sorted(group.n_test for group in seen.groups) == sorted(rows.values())
    np.testing.assert_allclose(
        seen.held["error"], np.min([counts["seen", site] / (rows[site] + 1) for site in SITES], axis=0)
    )
    assert [(group.n_test, group.plants) for group in summed.groups] == [(sum(rows.values()), len(SITES))]
    pooled = sum(counts["summed", site] for site in SITES)
    np.testing.assert_array_equal(summed.held["error"], pooled / (sum(rows.values()) + len(SITES)))


@pytest.mark.parametrize("name", ["seen", "summed"])
def test_a_diagnosis_over_rest_has_a_set_probabilities_and_what_they_are_worth(
    ask: Ask, versions: dict[str, ModelVersion], name: str
) -> None:
    path = f"/v1/models/calibrated-{name}/diagnose"
    status, answer = ask("POST", path, {"sample": SAMPLE})
    assert status == 200, answer
    (found,) = answer["diagnoses"]
    assert found["coverage"] == 0.9 and found["fault_class"] in found["class_set"]
    assert sum(found["probabilities"].values()) == pytest.approx(1.0)
    assert max(found["probabilities"], key=found["probabilities"].get) == found["fault_class"]
    assert answer["calibration"]["available"] and answer["calibration"]["n_test"] == 46
    sizes = [
        len(ask("POST", path, {"sample": SAMPLE, "coverage": level})[1]["diagnoses"][0]["class_set"])
        for level in (0.3, 0.6, 0.9)
    ]
    assert sizes == sorted(sizes)


def test_a_coverage_that_there_is_not_is_refused_over_rest_with_how_many_rows_it_takes(ask: Ask) -> None:
    path = "/v1/models/calibrated-seen/diagnose"
    status, answer = ask("POST", path, {"sample": SAMPLE, "coverage": 0.99})
    assert status == 409 and "needs 99 held-out rows a plant, the fewest there are 12" in json.dumps(answer)
    for wrong in (0.0, 1.0, -1):
        assert ask("POST", path, {"sample": SAMPLE, "coverage": wrong})[0] == 422


def test_a_plan_that_asks_for_too_much_gets_a_challenger_with_a_clear_line(
    ask: Ask, versions: dict[str, ModelVersion]
) -> None:
    assert ask("POST", "/v1/models/calibrated-greedy/diagnose", {"sample": SAMPLE})[0] == 404, "no champion"
    status, detail = ask("GET", "/v1/models/calibrated-greedy/versions/challenger")
    assert status == 200
    (gate,) = [each for each in detail["gates"] if each["name"] == "coverage"]
    assert not gate["holds"] and "coverage 0.99" in gate["reason"] and "needs 99" in gate["reason"]


def test_the_report_says_it_and_the_ledger_shows_whole_numbers_alone(
    works: Any, versions: dict[str, ModelVersion]
) -> None:
    page = report_page(works.context.registry.report(versions["seen"]))
    assert "sets of classes" in page and "coverage 0.9 at every plant or cohort that counted" in page
    lines = (works.context.settings.home / "plants" / "plant-1" / "ledger.jsonl").read_text().splitlines()
    mine = [each for each in map(json.loads, lines) if each.get("run") == versions["seen"].run_id]
    shapes = [each["fields"] for each in mine if each["kind"] == "evaluate"]
    assert len(shapes) == 2 and set(shapes[-1]) == {"confidences", "counts", "n_test", "right"}
