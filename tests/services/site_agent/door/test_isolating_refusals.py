"""That an answer would isolate a row is of the rows: a plant says it a few times, and of no method that has no sums."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest

from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.wire.messages import Kind, SiteUpdate
from services.masking.unmasking import deliveries
from services.site_agent.door import row_answers
from services.site_agent.rules.policy import REASONS, SitePolicy
from services.site_agent.settings import CsvSource
from services.site_agent.vault.records.told_models import ISOLATING, ISOLATING_IN_ALL
from tests.services.site_agent.party import Party, first_question

METHOD, OTHER = "wafl", "level-bundle-plain"
FIXED = TrainingSpec.model_validate({"radius": {"rule": "fixed", "value": 0.01}})
RULES = SitePolicy.model_validate({
    "methods": (METHOD, OTHER, "level-bundle"), "asset_types": ("pump",), "messages": get_args(Kind),
    "reveal": ("each site",),
})
STEEP = 40.0


def plane(threshold: float) -> np.ndarray:
    """One whose kinks lie where the flow is about a threshold."""
    return np.array([[STEEP, 0.0, 0.0, -STEEP * threshold]])


def asked(site: Any, threshold: float, run: str = "a" * 32, method: str = METHOD, **changes: Any) -> str:
    """Code of the refusal of a question; empty where it is answered."""
    arrays = {"point": plane(threshold), "price": np.array([STEEP])}
    if method == OTHER:
        arrays.pop("price")
    answer = site.ask("round", run_id=run, method=method, spec=FIXED, arrays=arrays, **changes)
    return "" if isinstance(answer, SiteUpdate) else str(answer.code)


def place_by_halving(site: Any, run: str) -> tuple[float, list[str]]:
    """Width within which it is known where a row lies, by questions from below on, and what was said to each."""
    low = 0.3 + 1e-4 * int(run, 16) / int("1" * 32, 16)  # other questions in every run
    codes, high, step = [""], 0.9, 0.002
    asked(site, low, run)
    while high - low > 1e-12:
        threshold = low + step
        codes.append(asked(site, threshold, run))
        if codes[-1] == "exposure_limit":
            high, step = threshold, step / 8
        elif codes[-1] == "":
            low = threshold
        else:
            break
    return high - low, codes


def test_where_a_row_lies_is_not_found_by_halving(make_site: Any) -> None:
    """Refusals that cost nothing told it to twelve digits, and D such places are the row."""
    site = make_site(policy=RULES)
    width, codes = place_by_halving(site, "a" * 32)
    assert codes.count("exposure_limit") == ISOLATING and codes[-1] == "budget_spent"
    assert 0.002 / 8 ** (ISOLATING - 1) == pytest.approx(width)
    second = place_by_halving(site, "b" * 32)[1]
    assert second.count("exposure_limit") <= ISOLATING_IN_ALL - ISOLATING and second[-1] == "budget_spent"
    assert place_by_halving(site, "c" * 32)[1][-1] == "budget_spent"
    assert asked(site.restarted(), 0.1, "d" * 32) == "budget_spent", "a restart begins nothing anew"


def test_such_a_run_is_told_no_more_vectors_and_is_evaluated_all_the_same(make_site: Any) -> None:
    site = make_site(policy=RULES)
    place_by_halving(site, "a" * 32)
    assert asked(site, 0.1) == "budget_spent", "whatever is asked"
    part = {"radius": 1.0, "label_flip_cost": 1.0, "lift": 0, "fold": 0}
    tuning = {"folds": 5, "seed": 3, "lifts": [None], "parts": [part], "scored": False}
    given: dict[str, Any] = {"method": METHOD, "spec": FIXED, "arrays": {"point_0": plane(0.1)}, "tuning": tuning}
    assert site.ask("tune", **given).code == "budget_spent", "cuts of a tuning are vectors too"
    evaluated = site.ask("evaluate", method=METHOD, spec=FIXED, arrays={"weights": plane(0.5)})
    assert isinstance(evaluated, SiteUpdate)
    assert asked(site, 0.5, "b" * 32, OTHER) == "", "a method with other answers in place of its own"
    assert asked(site, 0.5, "c" * 32) in ("", "exposure_limit"), "another run"


def test_the_same_question_again_is_no_further_bit(make_site: Any) -> None:
    site = make_site(policy=RULES)
    refused: list[float] = []
    for threshold in np.arange(0.3, 0.9, 0.002):
        if asked(site, float(threshold)) == "exposure_limit":
            refused.append(float(threshold))
        if len(refused) == ISOLATING - 1:
            break
    assert len(refused) == ISOLATING - 1
    for run in ("a" * 32, "b" * 32):
        for threshold in refused * 2:
            assert asked(site, threshold, run) == "exposure_limit"
    assert asked(site, 0.1) == ""


def test_of_other_rows_it_begins_anew(make_site: Any, write_csv: Any, make_table: Any) -> None:
    site = make_site(policy=RULES)
    for run in "abc":
        place_by_halving(site, run * 32)
    assert asked(site, 0.1, "d" * 32) == "budget_spent"
    later = CsvSource(kind="csv", path=write_csv(make_table(100, seed=3), "later.csv"))
    assert asked(site.restarted(source=later), 0.1, "d" * 32) == ""


def test_what_a_policy_refuses_by_the_question_alone_is_not_counted(make_site: Any) -> None:
    site = make_site(policy=RULES.model_copy(update={"allow_unaccounted": False}))
    spec = TrainingSpec.model_validate({"lift": {"kind": "spline", "segments": 2}})
    for number in range(2 * ISOLATING_IN_ALL):
        arrays = {"point": np.full((1, 7), 0.01 * number)}
        assert site.refusal_code("round", method=OTHER, spec=spec, arrays=arrays) == "exposure_limit"
    assert asked(site, 0.5, "b" * 32, OTHER) == ""


def test_a_method_that_cannot_be_summed_is_refused_before_anything_is_computed(
    new_party: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was computed and recorded, and failed in the words; a refusal on the way was a bit of the rows."""
    party: Party = new_party(methods=(METHOD, "cohort-bundle"), exposure_limit=0.0)
    party.agree()
    said = party.site.ask("join", method=METHOD, reveal="sums")
    assert said.code == "mode_not_allowed" and said.reason == REASONS["mode_not_allowed"]
    assert "cannot be summed" in said.reason

    def never(*_: Any) -> None:
        raise AssertionError("the rows were asked")

    monkeypatch.setattr(row_answers, "solve_round", never)
    prepared = party.prepare(1)
    given = deliveries(party.cohort, 1, prepared)["plant-1"]
    arrays = {"point": plane(0.5), "price": np.array([STEEP])}
    answer = party.site.ask(
        "round", run_id=party.cohort.run_id, method=METHOD, reveal="sums", masking=given, arrays=arrays, spec=FIXED,
    )
    assert answer.code == "mode_not_allowed"
    monkeypatch.undo()
    message, _ = first_question()
    assert isinstance(
        party.ask("round", given, round=1, arrays=message, parameters={"questions": 2.0}), SiteUpdate
    ), "and nothing of it counts"
