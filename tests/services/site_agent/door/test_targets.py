"""A plant's targets: which rows have one, how they are read, scaled and split, and what an evaluation tells of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.features.spline import spline_lift
from models.tuning.folds import deal_rows, deal_whole
from models.worst_case.risk import site_cut
from services.contracts.errors import BallastError
from services.contracts.machines.asset_type import AssetType
from services.contracts.machines.target import Target
from services.contracts.problems.training_spec import RadiusRule, TrainingSpec
from services.contracts.wire.messages import SiteUpdate
from services.site_agent.answers.local_solve import site_problems
from services.site_agent.limits.row_reach import row_reach
from services.site_agent.own_use.own_screen import data_summary
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.settings import CsvSource, ParquetSource
from services.site_agent.vault.dataset import Dataset
from services.site_agent.vault.errors import VaultError
from services.site_agent.vault.reader import Vault

Rows = list[list[Any]]
GAP = Target(name="gap", unit="mm", low=0.0, high=8.0)
HUBER = TrainingSpec.model_validate({"loss": {"name": "huber", "epsilon": 0.1}})


@pytest.fixture
def both(asset_type: AssetType) -> AssetType:
    return asset_type.model_copy(update={"target": GAP})


@pytest.fixture
def bare(asset_type: AssetType) -> AssetType:
    return asset_type.model_copy(update={"target": GAP, "fault_classes": ()})


@pytest.fixture
def load(write_csv: Callable[..., Path]) -> Callable[..., Dataset]:
    def load(rows: Rows, kind: AssetType, **source: Any) -> Dataset:
        return Vault(CsvSource(kind="csv", path=write_csv(rows), **source), kind).current()

    return load


def measured(count: int, seed: int = 0) -> Rows:
    """Rows whose gap follows from flow and ripple; every third has no class, every fourth no gap."""
    draw, rows = np.random.default_rng(seed), [["flow", "ripple", "oil", "label", "gap [mm]"]]
    for number in range(count):
        flow, ripple = draw.uniform(0, 100), draw.uniform(-10, 10)
        gap = 0.05 * flow + 0.1 * (ripple + 10) + 0.05 * draw.standard_normal()
        word = ("healthy", "leak")[number % 2] if number % 3 else ""
        rows.append([flow, ripple, 2.0, word, f"{gap:.6f}" if number % 4 or not word else ""])
    return rows


def test_a_row_may_have_a_class_or_a_target_or_both(load: Any, both: AssetType) -> None:
    rows = [["flow", "ripple", "oil", "label", "gap"], [50, 0, 1, "leak", 2], [25, 0, 1, "", 9], [75, 0, 1, "leak", ""]]
    dataset = load(rows, both, test_fraction=0.1)
    np.testing.assert_array_equal(dataset.train.classes, [1, -1, 1])
    np.testing.assert_array_equal(dataset.train.targets, [0.25, 1.0, np.nan])
    assert dataset.clipped == {"gap": 1}
    assert dataset.rows_for("regression").train.targets.tolist() == [0.25, 1.0]
    assert dataset.rows_for("classification").train.features[:, 0].tolist() == [0.5, 0.75]
    assert dataset.rows_for("regression") is dataset.rows_for("regression")


def test_a_type_without_classes_reads_no_labels_and_one_task_takes_all_rows_as_they_are(
    load: Any, bare: AssetType
) -> None:
    dataset = load([["flow", "ripple", "Spalt"], [50, 0, 4], [25, 0, 2]], bare, target_column="Spalt",
                   test_fraction=0.1, units={"gap": "mm"})
    assert dataset.rows_for("regression") is dataset
    with pytest.raises(VaultError, match="no row of the training part has a class") as refusal:
        dataset.rows_for("classification")
    assert refusal.value.refusal_code == "no_labels"


@pytest.mark.parametrize(
    ("header", "row", "changes", "said"),
    [
        ("gap", "", {}, "line 2: the row has neither a class nor a value of the target"),
        ("gap", "wide", {}, "column 'gap' holds text where a number must be"),
        ("gap", "nan", {}, "column 'gap' holds NaN"),
        ("gap [cm]", "2", {}, "target gap is in 'cm', the contract wants 'mm'"),
        ("gap", "2", {"units": {"gap": "cm"}}, "settings: target gap is in 'cm'"),
        ("gap", "2", {"units": {"width": "mm"}}, "settings: the unit of 'width' is given, but the contract has"),
        ("width", "2", {}, "neither a column 'label' for the class nor a column 'gap' for the target"),
        ("gap", "2", {"target_column": "width"}, "has no column 'width' for the target gap"),
    ],
)
def test_what_does_not_fit_of_a_target_is_said_with_its_place(
    load: Any, both: AssetType, write_csv: Any, header: str, row: str, changes: dict[str, Any], said: str
) -> None:
    rows = [["flow", "ripple", "oil", header], [50, 0, 1, row]]
    path = write_csv(rows)
    with pytest.raises(VaultError, match=".") as refusal:
        Vault(CsvSource(kind="csv", path=path, **({"units": {}} | changes)), both).current()
    assert said in str(refusal.value) and "\n" not in str(refusal.value)


def test_of_a_historians_thousand_columns_the_first_are_named_on_one_line(
    load: Any, both: AssetType, write_csv: Any
) -> None:
    """Where neither the class nor the target is among them."""
    tags = ["tag\x1b[2J", *(f"tag {number}" for number in range(1000))]
    rows = [["flow", "ripple", "oil", *tags], [50, 0, 1, *tags]]
    with pytest.raises(VaultError, match="neither a column 'label'") as refusal:
        load(rows, both)
    said = str(refusal.value)
    assert said.isprintable() and said.endswith("tag 25 and 974 more")


def test_a_target_outside_its_range_is_refused_where_the_contract_says_so(load: Any, bare: AssetType) -> None:
    strict = bare.model_copy(update={"target": GAP.model_copy(update={"out_of_range": "refuse"})})
    rows = [["flow", "ripple", "gap"], [50, 0, 4], [25, 0, 9]]
    with pytest.raises(VaultError, match=r"line 3: target gap is outside its range \[0, 8\] mm \(1 of 2 rows\)"):
        load(rows, strict)


def test_settings_that_name_a_target_that_the_contract_lacks_are_refused(load: Any, asset_type: AssetType) -> None:
    with pytest.raises(VaultError, match="settings name a target_column, but asset type pump has no target"):
        load([["flow", "ripple", "label"], [50, 0, "leak"]], asset_type, target_column="gap")


def test_parquet_holds_what_csv_holds_its_gaps_and_its_unit(load: Any, both: AssetType, tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = measured(60)
    columns = {"flow": [], "ripple": [], "oil": [], "label": [], "gap": []}
    for row in rows[1:]:
        for name, cell in zip(columns, row, strict=True):
            columns[name].append(None if cell == "" else float(cell) if name == "gap" else cell)
    table = arrow.table(columns)
    path = tmp_path / "rows.parquet"
    parquet.write_table(table, path)
    from_csv, from_parquet = load(rows, both), Vault(ParquetSource(kind="parquet", path=path), both).current()
    for mine, theirs in ((from_csv.train, from_parquet.train), (from_csv.test, from_parquet.test)):
        np.testing.assert_array_equal(mine.targets, theirs.targets)
        np.testing.assert_array_equal(mine.classes, theirs.classes)
    wrong = table.schema.field("gap").with_metadata({"unit": "cm"})
    parquet.write_table(table.cast(arrow.schema([*list(table.schema)[:4], wrong])), path)
    with pytest.raises(VaultError, match="target gap is in 'cm'"):
        Vault(ParquetSource(kind="parquet", path=path), both).current()


def test_the_screen_of_the_plant_says_how_many_targets_there_are(
    both: AssetType, write_csv: Any, policy: SitePolicy
) -> None:
    source = CsvSource(kind="csv", path=write_csv(measured(120)))
    lines = data_summary(source, both, policy)
    assert any(line.startswith("training: ") and "values of the target gap" in line for line in lines)
    few = [row if number < 30 else [*row[:3], row[3] or "leak", ""] for number, row in enumerate(measured(120))]
    lines = data_summary(source.model_copy(update={"path": write_csv(few, "few.csv")}), both, policy)
    assert any(line.startswith("no regression: ") for line in lines)
    nothing = [*measured(120)[:12]]
    with pytest.raises(BallastError):
        data_summary(source.model_copy(update={"path": write_csv(nothing, "none.csv")}), both, policy)


def test_an_evaluation_tells_sums_of_the_held_out_targets_alone(make_site: Any, both: AssetType) -> None:
    site = make_site(measured(160), asset_type=both)
    test = Vault(site.source, both).current().rows_for("regression").test
    weights, interval = np.array([[0.6, 0.2, 0.0, 0.05]]), np.array([-0.02, 0.05])
    answer = site.ask("evaluate", spec=HUBER, arrays={"weights": weights, "interval": interval})
    assert isinstance(answer, SiteUpdate)
    residuals = test.features @ weights[0, :-1] + weights[0, -1] - test.targets
    sums = {name: float(array) for name, array in answer.arrays.items() if name != "risk"}
    exact = {
        "loss": HUBER.loss.loss.value(residuals).mean(), "n_test": len(test), "absolute_error": abs(residuals).sum(),
        "squared_error": (residuals**2).sum(), "target_sum": test.targets.sum(),
        "target_squares": (test.targets**2).sum(), "pinball_loss": abs(residuals).sum() / 2,
        "covered": ((residuals >= -0.02) & (residuals <= 0.05)).sum(),
    }
    reach = row_reach(weights, HUBER, both)
    assert reach.errors["absolute_error"] == pytest.approx(0.8 + 1.0), "of the readings and of the target"
    steps = {name: each / 500 for name, each in {"loss": reach.loss / len(test), **reach.errors}.items()}
    for name, value in exact.items():
        below = float(value) - sums[name]
        assert -1e-12 <= below <= 2 * steps[name] + 1e-3 * float(value) if name in steps else abs(below) < 1e-12, name
        assert name not in steps or below > 0, "all digits"
    assert 0 < sums["covered"] < len(test)


def test_a_fold_of_a_tuning_tells_its_errors_in_steps_from_below(make_site: Any, both: AssetType) -> None:
    rules = SitePolicy(methods=("level-bundle",), asset_types=("pump",), messages=("tune",), reveal=("each site",))
    site = make_site(measured(240), asset_type=both, policy=rules)
    train = Vault(site.source, both).current().rows_for("regression").train
    folds = deal_rows(train.features, np.zeros(len(train), dtype=np.intp), 3, 3)
    lifts = [None, {"kind": "spline", "segments": 8}]
    parts = [{"radius": 1.0, "label_flip_cost": 1.0, "lift": lift, "fold": 1} for lift in (0, 1)]
    narrow = np.zeros((1, 25))
    narrow[0, 0], narrow[0, -1] = 40.0, -4.5  # all rows lie above the first segment: an error as small as others'
    weights = {"weights_0": np.array([[0.6, 0.2, 0.0, 0.05]]), "weights_1": narrow}
    tuning = {"folds": 3, "seed": 3, "lifts": lifts, "parts": parts, "scored": True}
    spec = HUBER.model_copy(update={"radius": RadiusRule(rule="fixed", value=0.01)})
    answer = site.ask("tune", spec=spec, arrays=weights, tuning=tuning)
    assert isinstance(answer, SiteUpdate), answer
    held = train.chosen(folds == 1)
    for j, steep in enumerate((0.8, 40.0)):
        features = held.features if j == 0 else spline_lift(3, 8).apply(held.features)
        planes = weights[f"weights_{j}"][0]
        exact = float(np.abs(features @ planes[:-1] + planes[-1] - held.targets).sum())
        count, told = answer.arrays[f"score_{j}"]
        assert count == len(held)
        assert 0.0 < exact - told <= 2 * (steep + 1.0) / 500 + 1e-3 * exact
        assert told == pytest.approx(np.rint(told / ((steep + 1.0) / 500)) * (steep + 1.0) / 500) or steep < 1.0


def test_with_fewer_machines_than_folds_a_cut_is_without_the_whole_machine_that_is_scored(
    make_site: Any, both: AssetType, monkeypatch: Any
) -> None:
    rules = SitePolicy(
        methods=("level-bundle",), asset_types=("pump",), messages=("tune",), reveal=("each site",), exposure_limit=1.0,
        max_answers_per_run=None,
    )
    site = make_site(measured(240), asset_type=both, policy=rules)
    dataset = site.door._vault.current()
    together = np.arange(len(dataset.train)) % 2
    monkeypatch.setattr(
        site.door._vault, "current", lambda: replace(dataset, train=replace(dataset.train, together=together))
    )
    train = site.door._vault.current().rows_for("regression").train
    folds = deal_whole(train.features, train.together, np.zeros(len(train), dtype=np.intp), 3, 3)
    spec = HUBER.model_copy(update={"radius": RadiusRule(rule="fixed", value=0.01)})
    weights = np.array([[0.6, 0.2, 0.0, 0.05]])
    for fold in range(3):
        part = {"radius": 1.0, "label_flip_cost": 1.0, "lift": 0, "fold": fold}
        tuning = {"folds": 3, "seed": 3, "lifts": [None], "parts": [part], "scored": False}
        scored = np.unique(train.together[folds == fold])
        assert len(scored) == 1
        kept = train.chosen(train.together != scored[0])
        problem = site_problems(spec, kept.features, kept.outcomes("regression"), both)[0]
        cut = site.ask("tune", spec=spec, round=2 * fold + 1, arrays={"point_0": weights}, tuning=tuning)
        assert isinstance(cut, SiteUpdate), cut
        assert cut.arrays["risk_0"].tolist() == [site_cut(weights[0], problem).risk]
        told = site.ask(
            "tune", spec=spec, round=2 * fold + 2, arrays={"weights_0": weights}, tuning={**tuning, "scored": True}
        )
        assert told.arrays["score_0"][0] == np.sum(folds == fold) > 0


def test_both_tasks_are_answered_from_the_rows_that_each_has(
    make_site: Any, both: AssetType, asset_type: AssetType
) -> None:
    site = make_site(measured(160), asset_type=both)
    whole = Vault(site.source, both).current()
    told = {name: site.ask("join", spec=spec) for name, spec in (("classification", TrainingSpec()),
                                                                 ("regression", HUBER))}
    for name, answer in told.items():
        assert isinstance(answer, SiteUpdate)
        assert answer.arrays["n_samples"] == len(whole.rows_for(name).train) < len(whole.train)
    assert site.refusal_code("evaluate", spec=HUBER, arrays={"weights": np.zeros((1, 4))}) == "bad_task"
    plain = make_site(folder="plain", asset_type=asset_type)
    assert plain.refusal_code("join", spec=HUBER) == "no_labels"


def test_a_policy_counts_the_rows_that_an_answer_is_over(
    make_site: Any, both: AssetType, policy: SitePolicy
) -> None:
    """A few rows with a target among many without would else be told of as if they were many."""
    rows = measured(160)
    given = iter(range(len(rows)))
    few = [rows[0], *([*row[:-1], row[-1] if row[-1] and next(given) < 15 else ""] for row in rows[1:] if row[-2])]
    site = make_site(few, asset_type=both, policy=policy.model_copy(update={"min_samples": 20}))
    trained = {name: len(site.door._vault.current().rows_for(name).train) for name in ("classification", "regression")}
    assert trained["classification"] > 20 > trained["regression"] > 1
    assert isinstance(site.ask("join"), SiteUpdate)
    assert site.refusal_code("join", spec=HUBER) == "too_few_samples"


WALLS = {
    "matrix": [[sign * (column == number) for column in range(3)] for sign in (1.0, -1.0) for number in range(3)],
    "limits": [100.0, 10.0, 4.0, 0.0, 10.0, 0.0],
}
"""The sensor ranges as half-spaces, in the contract's units."""


def test_a_polytope_in_the_contracts_units_is_the_box_of_the_sensor_ranges(make_site: Any, both: AssetType) -> None:
    pytest.importorskip("cvxpy")
    site, weights = make_site(measured(80), asset_type=both), np.array([[0.6, 0.2, 0.1, 0.05]])
    ball = {"radius": {"rule": "fixed", "value": 3.0}, "transport_norm": "l1"}
    cases: list[tuple[str, dict[str, Any]]] = [("hinge", {}), ("pinball", {"target_column": [0.0] * 6 + [1.0, -1.0]})]
    for loss, ends in cases:
        walls: dict[str, Any] = {**WALLS, **ends}
        if ends:
            walls |= {"matrix": [*walls["matrix"], [0.0] * 3, [0.0] * 3], "limits": [*walls["limits"], 8.0, 0.0]}
        risks = []
        for support in ("sensor_ranges", walls, "unbounded"):
            spec = TrainingSpec.model_validate({**ball, "loss": loss, "support": support})
            run = ("a" if loss == "hinge" else "b") * 32
            answer = site.ask("evaluate", run_id=run, spec=spec, arrays={
                "weights": weights, **({"interval": np.array([-1.0, 1.0])} if ends else {}),
            })
            assert isinstance(answer, SiteUpdate), answer
            risks.append(float(answer.arrays["risk"][0]))
        assert risks[0] == pytest.approx(risks[1], rel=1e-6) and risks[0] < risks[2]
        narrow = {**walls, "limits": [50.0, *walls["limits"][1:]]}
        spec = TrainingSpec.model_validate({**ball, "loss": loss, "support": narrow})
        arrays = {"weights": weights, "interval": np.array([-1.0, 1.0])}
        assert site.refusal_code("evaluate", run_id=run, spec=spec, arrays=arrays) == "bad_task"
