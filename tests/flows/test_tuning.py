"""Tuning through real NATS, a real database and a real registry: before the rounds, on sums and with single answers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from flows.publish import end_of_tuning
from services.contracts.errors import NotFoundError
from services.contracts.history.run import Run
from services.contracts.plans.overrides import tuning_alone
from services.contracts.plans.plan import Plan
from services.contracts.versions.model_version import ModelVersion
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
    _, _, version = works.train(works.plan("untuned", max_rounds=2), registered=False)
    document = version.to_document()
    assert version.tuning is None and "tuning" not in document
    assert ModelVersion.from_document(document).to_document() == document


def tuned_alone(works: Any, plan: Plan) -> Run:
    """A run that tunes alone, from the question who is there to its end."""
    async def whole() -> Run:
        run = works.context.store.runs.create_run(tuning_alone(plan))
        async with works._plants(()), works.context.plant_link() as transport:
            coordinator = works.context.coordinator(run, transport)
            end_of_tuning(works.context, await coordinator.tune(await coordinator.join(run)))
        return Run.model_validate(works.context.store.runs.get_run(run.run_id))

    return asyncio.run(whole())


@pytest.mark.parametrize("reveal", ["sums", "each site"])
def test_a_tuning_alone_makes_no_version_and_the_next_training_takes_its_choice(
    works: Any, reveal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = works.plan(f"alone-{reveal.replace(' ', '-')}", reveal=reveal, tuning=GRID)
    told, tell = list[tuple[str, str]](), works.context.store.runs.set_doing

    def noted(run_id: str, doing: str) -> None:
        tell(run_id, doing)
        told.append((doing, works.context.store.runs.get_run(run_id).doing))

    monkeypatch.setattr(works.context.store.runs, "set_doing", noted)
    alone = tuned_alone(works, plan)
    curve = alone.plan.tuned
    assert curve is not None and alone.doing == ""
    assert told == [(f"tuning, exchange {n}",) * 2 for n in range(1, curve.rounds + 1)], "who looks sees how far it is"
    assert (alone.status, alone.rounds, alone.model_version) == ("completed", 0, None)
    assert curve is not None and len(curve.candidates) == 8 and "chosen of 8 candidates" in alone.reason
    assert curve.why in alone.reason and "the plan's next training takes it" in alone.reason
    with pytest.raises(NotFoundError):
        works.context.registry.versions(plan.name)
    run, _, version = works.train(plan)
    assert version.tuning == curve.model_copy(update={"reused_from": alone.run_id})
    assert version.spec.lift == curve.terms.lift and run.plan.spec == alone.plan.spec
    assert f"The choice is that of run {alone.run_id}." in report_page(works.context.registry.report(version))
    ledger = works.context.settings.home / "plants" / "plant-1" / "ledger.jsonl"
    kinds = {line["kind"] for line in map(json.loads, ledger.read_text().splitlines()) if line.get("run") == run.run_id}
    assert "join" in kinds and "tune" not in kinds, "no plant is asked twice"


def test_a_training_goes_on_from_the_last_one_over_a_tuning_between(works: Any) -> None:
    plan = works.plan("between", tuning=GRID, max_rounds=7)
    tuned_alone(works, plan)
    first, cold, _ = works.train(plan, registered=False)
    alone = tuned_alone(works, plan)
    second, warm, version = works.train(plan, registered=False)
    assert second.start.after == first.run_id and version.tuning.reused_from == alone.run_id
    assert second.plan.spec == first.plan.spec, "the same rows, so the same choice"
    assert version.reused is not None and version.reused.run_id == first.run_id and warm.rounds < cold.rounds
    curve = tuned_alone(works, plan).plan.tuned
    assert curve is not None and curve.reference_rounds == 7, "a warm training is no measure of what one costs"
