"""From the counts of plants and cohorts to what a version keeps."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from models.basics import FloatArray
from models.conformal.grid import counts_at_or_below, score_grid
from models.conformal.spread import residual_counts, shape_of
from models.conformal.temperature import confidence_counts
from models.losses.catalogue import get_loss
from models.problem import RobustSpec, SiteProblem
from models.site_ambiguity.ball import MixtureBall, worst_mixture
from services.contracts.evaluation.calibration import CalibrationFacts
from services.contracts.history.run import Run, SiteTermsRecord
from services.contracts.plans.plan import Plan
from services.contracts.problems.training_spec import TrainingSpec
from services.coordinator.asking.plausibility import counted_doubt
from services.coordinator.ending.calibration import calibration, kind_of
from services.site_agent.answers.local_scores import calibration_counts, spread_counts

SITES = ("a", "b", "c")
WEIGHTS = (0.5, 0.3, 0.2)
ALONE = {site: (site,) for site in SITES}
HUBER_BALL = RobustSpec(0.02, 1.0, loss=get_loss("huber"))


def a_run(**plan: Any) -> Run:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    return Run(
        run_id="ab" * 16, plan=Plan.model_validate({"name": "rig", "asset_type": "rig", "reveal": "each site", **plan}),
        status="running", created_at=now, updated_at=now,
        sites=tuple(
            SiteTermsRecord(site_id=site, weight=weight, radius=0.1, n_samples=100)
            for site, weight in zip(SITES, WEIGHTS, strict=True)
        ),
    )


def told(seed: int, n: int = 60, classes: bool = True) -> dict[str, FloatArray]:
    draw = np.random.default_rng(seed)
    rows = [draw.normal(0.2 * seed, 0.5, n), np.abs(draw.normal(size=n)), np.abs(draw.normal(size=n))]
    counts = np.stack([counts_at_or_below(each, score_grid()) for each in rows])
    said = {"counts": counts, "n_test": np.array(float(n))}
    if classes:
        scores = draw.standard_normal((n, 2))
        said |= {"confidences": confidence_counts(scores), "right": np.array(float(n // 2 + 10))}
    return said


SAID = {site: told(seed) for seed, site in enumerate(SITES)}


def test_over_every_group_the_least_share_counts_and_over_mixtures_that_of_the_worst_one() -> None:
    shares = np.stack([SAID[site]["counts"][0] / 61 for site in SITES])
    every = calibration(a_run(), SAID, ALONE)
    np.testing.assert_allclose(every.held["error"], shares.min(axis=0))
    ball = {"norm": "l1", "radius": 0.4}
    mixed = calibration(a_run(coverage_over="mixture", mixture=ball), SAID, ALONE)
    worst = [-worst_mixture(-each, np.array(WEIGHTS), MixtureBall("l1", 0.4)).value for each in shares.T]
    np.testing.assert_allclose(mixed.held["error"], worst)
    assert every.threshold(0.9) >= mixed.threshold(0.9)


def test_over_mixtures_of_plants_without_a_share_every_one_of_them_must_hold() -> None:
    """Those that have one counted nothing: of no shares there is no mixture."""
    run = a_run(coverage_over="mixture")
    told = {SITES[0]: SAID[SITES[0]]}
    without = [
        site.model_copy(update={"weight": 0.0}) if site.site_id == SITES[0] else site for site in run.sites
    ]
    found = calibration(run.model_copy(update={"sites": tuple(without)}), told, ALONE)
    every = calibration(a_run(coverage_over="every group"), told, ALONE)
    assert found.held == every.held and np.isfinite(found.held["error"]).all()


def test_whether_a_row_is_strange_is_asked_of_all_rows_together() -> None:
    said = {site: told(seed, 120) for seed, site in enumerate(SITES)}
    found = calibration(a_run(), said, ALONE)
    for place, row in ((1, "size"), (2, "reach")):
        pooled = sum(said[site]["counts"][place] for site in SITES)
        np.testing.assert_allclose(found.held[row], pooled / (360 + 3))
    assert found.n_test == 360 and found.strangest("size") < np.inf
    few = calibration(a_run(), {"a": told(1, 30)}, ALONE)
    assert few.strangest("size") == np.inf, "30 rows do not tell one in forty"
    facts = [CalibrationFacts.of(each) for each in (found, few)]
    assert [each is not None and each.tells_unlike for each in facts] == [True, False], "and the version says so"


def test_a_cohorts_sum_counts_with_all_of_its_plants() -> None:
    together = {
        "cohort-1": {name: np.sum([SAID[site][name] for site in SITES], axis=0) for name in SAID["a"]}
    }
    found = calibration(a_run(), together, {"cohort-1": SITES})
    np.testing.assert_allclose(found.held["error"], together["cohort-1"]["counts"][0] / (180 + 3))
    assert [(group.n_test, group.plants) for group in found.groups] == [(180, 3)]


def test_who_counts_nothing_is_missing_and_with_nobody_the_version_says_so() -> None:
    some = calibration(a_run(), {"a": SAID["a"]}, ALONE)
    assert some.missing == 2 and len(some.groups) == 1 and not some.lacks(0.9) and not some.asked
    none = calibration(a_run(coverage=0.95), {}, ALONE)
    assert none.asked and none.missing == 3 and "no plant counted" in none.lacks(0.95)


def test_what_one_plant_did_not_tell_or_cannot_have_counted_is_said() -> None:
    silent = calibration(a_run(), SAID | {"b": told(1, classes=False)}, ALONE)
    assert silent.scale is None and silent.missing == 0 and not silent.lacks(0.9)
    wrong = calibration(a_run(), SAID | {"b": SAID["b"] | {"n_test": np.array(10.0)}}, ALONE)
    assert wrong.note.startswith("the counts cannot be: ") and not wrong.held and not wrong.groups


@pytest.mark.parametrize(
    ("loss", "kind"),
    [({"name": "huber"}, "absolute"), ({"name": "pinball", "quantile": 0.5}, "absolute"),  # counted as agents of before
     ({"name": "pinball", "quantile": 0.9}, "tails"), ({"name": "hinge"}, "sets")],
)
def test_the_errors_of_a_quantile_are_taken_by_their_tails(loss: Any, kind: str) -> None:
    run = a_run(spec={"loss": loss})
    said = {site: told(seed, classes=kind == "sets") for seed, site in enumerate(SITES)}
    found = calibration(run, said, ALONE)
    assert found.kind == kind and (found.scale is not None) == (kind == "sets")
    assert found.check(0.9) == 0.9
    if kind != "sets":
        low, high = found.residuals(0.9)
        assert low < 0 < high


def told_by_estimate(seed: int, n: int = 60) -> dict[str, FloatArray]:
    draw = np.random.default_rng(seed)
    parts = []
    for rows in (n, 500):
        estimates = draw.uniform(0.0, 1.0, rows)
        parts.append((estimates, np.clip(estimates + 0.2 * estimates * draw.standard_normal(rows), 0.0, 1.0)))
    return told(seed, n, classes=False) | {
        "by_estimate": residual_counts(*parts[0]), "training": residual_counts(*parts[1], coarse=True),
        "n_train": np.array(500.0),
    }


def test_the_shape_is_of_all_training_rows_and_every_plant_must_hold_enough_of_its_own() -> None:
    said = {site: told_by_estimate(seed) for seed, site in enumerate(SITES)}
    found = calibration(a_run(spec={"loss": {"name": "huber"}}), said, ALONE)
    assert found.kind == "spread" and found.spread is not None
    shape = shape_of(np.sum([each["training"] for each in said.values()], axis=0))
    assert found.spread.below == tuple(shape.below) and found.spread.above == tuple(shape.above)
    own = np.stack([shape.held(each["by_estimate"]) / 61 for each in said.values()])
    np.testing.assert_array_equal(found.held["spread"], own.min(axis=0))
    low, high = np.diff(found.interval(0.9, np.array([0.05, 0.95])), axis=0)[0]
    assert low < 0.5 * high and found.most == pytest.approx(60 / 61)
    together = {"cohort-1": {name: np.sum([each[name] for each in said.values()], axis=0) for name in said["a"]}}
    summed = calibration(a_run(spec={"loss": {"name": "huber"}}), together, {"cohort-1": SITES})
    assert summed.spread == found.spread
    np.testing.assert_allclose(summed.held["spread"], own.sum(axis=0) * 61 / 183)


def test_one_plant_of_before_among_them_and_the_intervals_have_one_width() -> None:
    said = {site: told_by_estimate(seed) for seed, site in enumerate(SITES)} | {"b": told(1, classes=False)}
    found = calibration(a_run(spec={"loss": {"name": "huber"}}), said, ALONE)
    assert found.kind == "absolute" and found.spread is None and found.missing == 0
    noisy = a_run(spec={"loss": {"name": "huber"}})
    assert kind_of(noisy.plan) == "spread"
    noise = noisy.plan.model_copy(update={"noise": object()})
    assert kind_of(noise) == "absolute", "training rows are not counted where a plan asks for noise"


@pytest.mark.parametrize(
    "change",
    [{"n_train": np.array(499.0)}, {"training": np.zeros((10, 27))},
     {"by_estimate": told_by_estimate(0)["by_estimate"][:, ::-1]},
     {"by_estimate": told_by_estimate(0)["by_estimate"] * 0.5}],
)
def test_counts_by_estimate_that_no_rows_give_are_doubted(change: Any) -> None:
    assert not counted_doubt(told_by_estimate(0))
    assert counted_doubt(told_by_estimate(0) | change)


@pytest.mark.parametrize(
    ("change", "doubted"),
    [
        ({}, False), ({"n_test": np.array(10.0)}, True), ({"right": np.array(2.5)}, True),
        ({"right": np.array(-1.0)}, True), ({"counts": SAID["a"]["counts"][:, ::-1]}, True),
        ({"counts": SAID["a"]["counts"] + 0.5}, True),
    ],
)
def test_counts_that_no_rows_give_are_doubted(change: Any, doubted: bool) -> None:
    assert bool(counted_doubt(SAID["a"] | change)) == doubted


def counting(works: Any, site: str, change: Any = None) -> None:
    """The plant answers the calibration's question as agents do that know it, but for what ``change`` makes of it."""
    plant = works.plants[site]

    def answer(task: Any, arrays: Any) -> Any:
        if "calibration" not in task.arrays:
            return arrays
        told = calibration_counts(
            task.arrays["weights"], plant.features, plant.features, plant.classes, "classification"
        )
        return told if change is None else told | change(told)

    plant.falsify = answer


@pytest.mark.parametrize("sums", [False, True])
def test_agents_of_before_and_plants_that_lie_are_missing_and_the_run_has_its_model(works: Any, sums: bool) -> None:
    """The plants of ``fake_ports`` know no calibration: what they answer is of other arrays, and is not admitted."""
    plan = {"reveal": "sums", "method": "cohort-bundle"} if sums else {}
    run = works.run(min_sites=3, coverage_over="mixture", **plan)
    trained = works.train(run)
    run = works.store.get_run(run.run_id)
    nobody = asyncio.run(works.coordinator().calibrate(run, trained.weights))
    assert nobody.missing == 4 and not nobody.held and "no plant counted" in nobody.note
    for site in list(works.plants)[:3]:
        counting(works, site)
    counting(works, "plant-4", lambda told: {"n_test": np.array(float(told["n_test"]) - 1.0)} if not sums else {})
    found = asyncio.run(works.coordinator().calibrate(run, trained.weights))
    assert found.missing == (0 if sums else 1)
    assert sum(group.plants for group in found.groups) == (4 if sums else 3)
    assert found.check(None) == 0.9 and found.scale is not None


def counting_residuals(works: Any, site: str, *, of_before: bool = False) -> None:
    """The plant counts by the estimate; one of before knows the first grid alone. Its classes serve as targets."""
    plant = works.plants[site]

    def answer(task: Any, arrays: Any) -> Any:
        weights, targets = task.arrays["weights"], plant.classes.astype(float)
        told = calibration_counts(weights, plant.features, plant.features, targets, "regression")
        if float(task.arrays["calibration"]) == 2.0:
            told |= spread_counts(weights, plant.features, targets, SiteProblem(plant.features, targets, HUBER_BALL))
        return told

    def refuse(task: Any) -> Any:
        asked = float(task.arrays.get("calibration", 0.0))
        return plant.refusal_of(task, "bad_task") if of_before and asked == 2.0 else None

    plant.falsify, plant.behave = answer, refuse


@pytest.mark.parametrize("of_before", [False, True])
@pytest.mark.parametrize(("sums", "keeps"), [(False, None), (True, None), (True, False)])
def test_plants_count_by_the_estimate_unless_one_is_of_before_when_all_are_asked_on_the_first_grid(
    works: Any, sums: bool, keeps: bool | None, of_before: bool
) -> None:
    """``keeps``: what every plant said as it joined of telling its own scores."""
    plan = {"reveal": "sums", "method": "cohort-bundle"} if sums else {}
    run = works.run(min_sites=3, max_rounds=2, coverage_over="mixture", **plan)
    trained = works.train(run)
    run = works.store.get_run(run.run_id)
    huber = TrainingSpec.model_validate({"loss": {"name": "huber"}, "radius": {"rule": "fixed", "value": 0.02}})
    sites = tuple(site.model_copy(update={"own_scores": keeps}) for site in run.sites)
    run = run.model_copy(update={"plan": run.plan.model_copy(update={"spec": huber}), "sites": sites})
    for number, site in enumerate(works.plants):
        counting_residuals(works, site, of_before=of_before and number == 1)
    found = asyncio.run(works.coordinator().calibrate(run, trained.weights))
    assert (found.kind, found.missing) == ("absolute" if of_before else "spread", 0)
    assert sum(group.plants for group in found.groups) == 4 and found.check(None) == 0.9
    if not of_before:
        rows = [spread_counts(
            trained.weights, each.features, each.classes.astype(float),
            SiteProblem(each.features, each.classes.astype(float), HUBER_BALL),
        )["training"] for each in works.plants.values()]
        assert found.spread is not None and found.spread.below == tuple(shape_of(np.sum(rows, axis=0)).below)
