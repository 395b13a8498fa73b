"""A tuning at the door: held-out rows never teach, answers over folds are accounted and guarded, policies refuse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from pydantic import ValidationError

from models.tuning.folds import deal_rows, deal_whole
from models.tuning.starts import answer_start
from models.worst_case.risk import site_cut
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.problems.tuning_task import TuningTask
from services.contracts.wire.messages import Kind, SiteRefusal, SiteUpdate
from services.masking.unmasking import deliveries
from services.site_agent.answers.local_solve import site_problems
from services.site_agent.rules.policy import SitePolicy
from tests.ledgers import verified
from tests.services.site_agent.door.test_targets import GAP, HUBER, measured

METHOD = "level-bundle"
GUARDED = 1e-10
"""How near to 1 a cosine to a row, with the intercept, is never let: one draw in some hundreds comes within 1e-9."""
FIXED = TrainingSpec.model_validate({"radius": {"rule": "fixed", "value": 0.01}})


def rules(**changes: Any) -> SitePolicy:
    values = {
        "methods": (METHOD,), "asset_types": ("pump",), "messages": get_args(Kind), "reveal": ("each site",),
        "max_answers_per_run": None,
    }
    return SitePolicy.model_validate(values | changes)


def part(fold: int, **changes: Any) -> dict[str, Any]:
    return {"radius": 1.0, "label_flip_cost": 1.0, "lift": 0, "fold": fold} | changes


def asked(site: Any, arrays: dict[str, Any], *parts: dict[str, Any], number: int = 1, **changes: Any) -> Any:
    tuning = {"folds": 5, "seed": 3, "lifts": [None], "parts": list(parts), "scored": False} | changes
    return site.ask("tune", round=number, method=METHOD, spec=FIXED, arrays=arrays, tuning=tuning)


def rows_of(site: Any) -> tuple[Any, Any]:
    train = site.door._vault.current().train
    return train, deal_rows(train.features, train.classes, 5, 3)


def rows_shown(site: Any, vectors: list[Any]) -> set[int]:
    """Rows, with the intercept, along which two vectors differ."""
    features = site.door._vault.current().train.features
    rows = np.column_stack([features, np.ones(len(features))])
    directions = rows / np.linalg.norm(rows, axis=1)[:, None]
    found = set()
    for i, first in enumerate(vectors):
        for second in vectors[:i]:
            step = first - second
            if np.linalg.norm(step) > 1e-9:
                cosine = np.abs(directions @ (step / np.linalg.norm(step)))
                found |= set(np.flatnonzero(cosine > 1 - GUARDED).tolist())
    return found


def test_a_cut_is_of_the_rows_without_the_fold_and_scores_are_of_the_fold(make_site: Any, asset_type: Any) -> None:
    site = make_site(policy=rules(exposure_limit=1.0))
    train, folds = rows_of(site)
    point = np.array([[0.4, -0.2, 0.1, 0.05]])
    arrays = {"point_0": point, "point_1": point}
    update = asked(site, arrays, part(0), part(2, radius=10.0, label_flip_cost=4.0))
    assert isinstance(update, SiteUpdate) and set(update.arrays) == {
        f"{name}_{j}" for name in ("risk", "cut_height", "slope", "norm_weight") for j in (0, 1)
    }
    for j, (fold, radius, cost) in enumerate(((0, 0.01, 1.0), (2, 0.1, 4.0))):
        spec = FIXED.model_validate({**dict(FIXED), "radius": {"rule": "fixed", "value": radius},
                                     "label_flip_cost": cost})
        kept = train.chosen(folds != fold)
        exact = site_cut(point[0], site_problems(spec, kept.features, kept.classes, asset_type)[0])
        assert update.arrays[f"risk_{j}"].tolist() == [exact.risk]
    scored = asked(site, {"weights_0": point}, part(4), number=2, scored=True)
    counts = scored.arrays["score_0"]
    assert counts.sum(axis=1).tolist() == np.bincount(train.classes[folds == 4], minlength=2).tolist()


def test_errors_of_a_model_are_told_in_its_own_steps_whatever_is_asked_beside_it(
    make_site: Any, asset_type: Any
) -> None:
    """In those of another, small one a row's reading could be read from them."""
    site = make_site(measured(160), asset_type=asset_type.model_copy(update={"target": GAP}), policy=rules())
    spec = HUBER.model_validate({**dict(HUBER), "radius": {"rule": "fixed", "value": 0.01}})
    models = {"weights_0": np.array([[0.0, 0.0, 0.0, 0.01]]), "weights_1": np.array([[40.0, -30.0, 20.0, 5.0]])}
    tuning = {"folds": 5, "seed": 3, "lifts": [None], "scored": True}

    def told(number: int, places: list[int]) -> list[Any]:
        arrays = {f"weights_{j}": models[f"weights_{place}"] for j, place in enumerate(places)}
        found = site.ask("tune", round=number, method=METHOD, spec=spec, arrays=arrays,
                         tuning=tuning | {"parts": [part(0, radius=1.0 + place) for place in places]})
        return [found.arrays[f"score_{j}"].tolist() for j in range(len(places))]

    both = told(1, [0, 1])
    assert both[0] != both[1] and [told(2, [0]), told(3, [1])] == [[both[0]], [both[1]]]


def test_a_fold_holds_whole_machines_where_the_plant_names_them(make_site: Any, monkeypatch: Any) -> None:
    site = make_site(policy=rules(exposure_limit=1.0))
    dataset = site.door._vault.current()
    together = np.arange(len(dataset.train)) // 4
    named = replace(dataset, train=replace(dataset.train, together=together))
    monkeypatch.setattr(site.door._vault, "current", lambda: named)
    folds = deal_whole(dataset.train.features, together, dataset.train.classes, 5, 3)
    point = np.array([[0.4, -0.2, 0.1, 0.05]])
    for number, fold in enumerate((0, 3), 1):
        counts = asked(site, {"weights_0": point}, part(fold), number=number, scored=True).arrays["score_0"]
        assert counts.sum(axis=1).tolist() == np.bincount(dataset.train.classes[folds == fold], minlength=2).tolist()
    assert not np.array_equal(folds, deal_rows(dataset.train.features, dataset.train.classes, 5, 3))


def test_counts_over_all_folds_are_told_once_and_held_to_the_policy_together(make_site: Any) -> None:
    site = make_site(policy=rules(exposure_limit=1.0, min_class_samples=12))
    train, folds = rows_of(site)
    weights = [np.array([[0.4 + 0.1 * fold, -0.2, 0.1, 0.05]]) for fold in range(5)]
    arrays = {f"weights_{fold}": each for fold, each in enumerate(weights)}
    rows = np.bincount(train.classes, minlength=2)
    assert rows.min() >= 12 > max(np.bincount(train.classes[folds == fold]).min() for fold in range(5))
    alone = asked(site, arrays, *(part(fold) for fold in range(5)), scored=True)
    assert not any(alone.arrays[f"score_{fold}"].all(axis=1).any() for fold in range(5)), "too few in each fold"
    told = asked(site, arrays, *(part(fold) for fold in range(5)), number=2, scored=True, pooled=True)
    assert list(told.arrays) == ["score_0"]
    wanted = np.zeros((2, 2))
    for fold, each in enumerate(weights):
        held = folds == fold
        diagnosed = (train.features[held] @ each[0, :3] + each[0, 3] > 0).astype(int)
        np.add.at(wanted, (train.classes[held], diagnosed), 1)
    assert told.arrays["score_0"].tolist() == wanted.tolist() and wanted.sum(axis=1).tolist() == rows.tolist()


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        ([part(0), part(1)], "over all folds, each once"),
        ([*map(part, range(5)), part(4)], "over all folds, each once"),
        ([*map(part, range(5)), part(0, radius=3.0)], "over all folds, each once"),
    ],
)
def test_pooled_counts_are_of_whole_candidates(parts: Any, line: str) -> None:
    given = {"folds": 5, "seed": 3, "lifts": [None], "parts": parts, "scored": True, "pooled": True}
    with pytest.raises(ValidationError, match=line):
        TuningTask.model_validate(given)
    assert TuningTask.model_validate(given | {"pooled": False})


def test_rows_of_the_fold_stand_with_zero_in_the_account(make_site: Any, accounts_of: Any) -> None:
    site = make_site(policy=rules(exposure_limit=1.0))
    accounts = accounts_of(site)
    assert isinstance(asked(site, {"point_0": np.full((1, 4), 0.2)}, part(1)), SiteUpdate)
    train, folds = rows_of(site)
    coefficients = accounts[0].rows[0]
    assert coefficients.shape == (len(train),)
    assert not coefficients[folds == 1].any() and coefficients[folds != 1].any()


def test_answers_over_folds_and_points_show_no_row_in_their_differences(make_site: Any) -> None:
    """One who asks for rows: near points with one fold, and the same point with all folds and terms."""
    site = make_site(policy=rules(nearness_limit=0.0))
    slopes, number = [], 0
    for threshold in np.linspace(0.3, 0.8, 60):
        number += 1
        point = np.array([[40.0, 0.0, 0.0, -40.0 * threshold]])
        parts = [part(0), part(number % 5), part(number % 5, label_flip_cost=4.0)]
        answer = asked(site, {f"point_{j}": point for j in range(3)}, *parts, number=number)
        assert isinstance(answer, SiteUpdate)
        slopes += [answer.arrays[f"slope_{j}"][0] for j in range(3)]
    assert not rows_shown(site, slopes)
    entries = [entry for entry in verified(site.folder / "ledger.jsonl") if entry["message"] == "update"]
    assert {entry["kind"] for entry in entries} == {"tune"}
    assert entries[-1]["exposure"]["by_differences"] == 0 and entries[-1]["exposure"]["vectors"] > 5


def test_a_step_tells_where_it_ends_on_the_rows_without_the_fold_and_its_account(
    make_site: Any, accounts_of: Any, asset_type: Any
) -> None:
    site = make_site(policy=rules(exposure_limit=1.0))
    accounts = accounts_of(site)
    update = asked(site, {}, part(1, penalty=0.5))
    assert isinstance(update, SiteUpdate) and set(update.arrays) == {"local_point_0"}
    train, folds = rows_of(site)
    kept = train.chosen(folds != 1)
    exact = answer_start(site_problems(FIXED, kept.features, kept.classes, asset_type), 0.5).arrays["local_point"]
    assert update.arrays["local_point_0"].tolist() == exact.tolist()
    coefficients = accounts[0].rows[0]
    assert coefficients.shape == (len(train),) and not coefficients[folds == 1].any() and coefficients.any()


def test_steps_of_all_folds_and_penalties_show_no_row_in_their_differences(make_site: Any) -> None:
    site, ends = make_site(policy=rules()), []
    for number, penalty in enumerate(np.geomspace(0.02, 2.0, 12), start=1):
        answer = asked(site, {}, *(part(fold, penalty=penalty) for fold in range(5)), number=number)
        assert isinstance(answer, SiteUpdate)
        ends += [penalty * answer.arrays[f"local_point_{j}"][0] for j in range(5)]  # the slope, but for the norm's part
    assert not rows_shown(site, ends)
    exposure = [e for e in verified(site.folder / "ledger.jsonl") if e["message"] == "update"][-1]["exposure"]
    assert exposure["by_differences"] == 0 and exposure["vectors"] > 5 and len(ends) == 60


def test_nothing_of_a_step_is_scored_and_tasks_without_one_are_as_before() -> None:
    given = {"folds": 5, "seed": 3, "lifts": [None], "parts": [part(0, penalty=1e-3)], "scored": True}
    with pytest.raises(ValidationError, match="nothing of it is scored"):
        TuningTask.model_validate(given)
    for wrong in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(ValidationError, match="penalty"):
            TuningTask.model_validate(given | {"parts": [part(0, penalty=wrong)], "scored": False})
    without = TuningTask.model_validate(given | {"parts": [part(0)], "scored": False})
    assert "penalty" not in without.model_dump_json(), "agents of before know no such name"


@pytest.mark.parametrize(
    ("changes", "task", "code"),
    [
        ({"messages": ("join", "round", "evaluate")}, {}, "message_not_allowed"),
        ({}, {"folds": 20}, "too_few_samples"),
        ({"noise_epsilon": 3.0}, {}, "noise_limit"),
        ({"steepness_limit": 1.0, "nearness_limit": 0.0}, {"steep": 1e4}, "question_refused"),
    ],
)
def test_what_the_policy_does_not_allow_is_refused(make_site: Any, changes: Any, task: Any, code: str) -> None:
    site = make_site(policy=rules(exposure_limit=1.0, **changes))
    point = np.full((1, 4), task.pop("steep", 0.2))
    answer = asked(site, {"point_0": point}, part(0), **task)
    assert isinstance(answer, SiteRefusal) and answer.code == code


def test_a_question_next_to_an_earlier_one_of_the_same_candidate_and_fold_is_refused(make_site: Any) -> None:
    site = make_site(policy=rules(exposure_limit=1.0, nearness_limit=1e-2))
    point = np.array([[0.4, -0.2, 0.1, 0.05]])
    assert isinstance(asked(site, {"point_0": point}, part(0)), SiteUpdate)
    assert isinstance(asked(site, {"point_0": point + 1e-9}, part(1), number=2), SiteUpdate), "another fold"
    again = asked(site, {"point_0": point + 1e-9}, part(0), number=3)
    assert isinstance(again, SiteRefusal) and again.code == "question_refused"
    tuning = {"folds": 5, "seed": 3, "lifts": [None], "parts": [part(0)], "scored": False}
    given = {"method": METHOD, "spec": FIXED, "arrays": {"point_0": point + 1e-9}, "tuning": tuning}
    assert isinstance(site.ask("tune", run_id="b" * 32, **given), SiteUpdate), "another run has asked nothing yet"


def test_on_sums_a_cut_that_may_not_fit_a_sum_is_refused_by_its_weights_alone(new_party: Any) -> None:
    """That the plant's own risk did not fit would tell, by halving, how large it is."""
    party = new_party()
    party.agree()
    tuning = {"folds": 5, "seed": 3, "lifts": [None], "parts": [part(0)], "scored": False}
    for number, (intercept, code) in enumerate(((1e3, None), (1e6, "question_refused")), start=1):
        delivery = deliveries(party.cohort, number, party.prepare(number))["plant-1"]
        given = {"arrays": {"point_0": np.array([[0.0, 0.0, 0.0, intercept]])}, "tuning": tuning, "spec": FIXED}
        assert getattr(party.ask("tune", delivery, round=number, **given), "code", None) == code


def test_a_message_that_does_not_fit_is_no_task(make_site: Any) -> None:
    policy, wrong = rules(exposure_limit=1.0), ({}, {"point_0": np.zeros((1, 3))}, {"point_0": np.full((1, 4), np.nan)})
    for number, arrays in enumerate(wrong):
        site = make_site(policy=policy, folder=f"site-{number}")
        answer = asked(site, arrays, part(0))
        assert isinstance(answer, SiteRefusal) and answer.code == "bad_task"
