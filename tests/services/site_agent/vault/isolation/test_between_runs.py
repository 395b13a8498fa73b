"""Answers before and after rows came, went or changed: what their differences leave alone does not leave."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from models.methods.catalogue import get_method
from models.methods.row_account import RowAccount
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.site_agent.rules.policy import Refusal, SitePolicy
from services.site_agent.vault.dataset import Part, build_dataset
from services.site_agent.vault.isolation.few_rows import late_vectors
from services.site_agent.vault.isolation.guard import VaultGuard
from services.site_agent.vault.isolation.other_versions import OtherVersions, row_numbers
from services.site_agent.vault.isolation.sketches import told_of_rows
from services.site_agent.vault.records import exposure_record
from services.site_agent.vault.records.exposure_gate import ExposureGate
from services.site_agent.vault.records.exposure_record import VERSIONS_KEPT, ExposureRecord
from services.site_agent.vault.sources.table import RawTable
from tests.attacks.gated_plants import dealt
from tests.attacks.versions import found_between

RUN, LATER = "a" * 32, "b" * 32
ROWS, DEPTH = 30, 32
DRAW = np.random.default_rng(5)
TABLE = Part(DRAW.uniform(size=(ROWS, 3)), DRAW.integers(0, 2, ROWS), np.full(ROWS, np.nan))
OTHER_ROW = np.array([[0.3, 0.2, 0.9]])


def of(train: Part, rows: Sequence[int], more: np.ndarray = OTHER_ROW[:0]) -> Part:
    """A version of the table with these of its rows, in this order, and more."""
    features = np.vstack([train.features[rows], more])
    classes = np.append(train.classes[rows], np.ones(len(more), dtype=np.intp))
    return Part(features, classes, np.full(len(classes), np.nan))


def all_rows(count: int) -> np.ndarray:
    """Coefficients of the slope at zero of a hinge: every row is at work there."""
    return np.full(count, 1.0 / count)


def admit(door: ExposureGate, train: Part, rows: np.ndarray, run: str = RUN, kind: float = 0.5) -> int:
    """How many rows differences isolate when the vector has left."""
    known = np.ones(len(train), dtype=bool)
    return door.admit(train, known, run, RowAccount((rows,)), kind=kind).by_differences


def open_gate(path: Path | None = None) -> ExposureGate:
    return ExposureGate(ExposureRecord(path), SitePolicy(exposure_limit=1.0))


@pytest.mark.parametrize(("rows", "more", "isolated"), [
    (range(ROWS), OTHER_ROW, 1), (range(1, ROWS), OTHER_ROW[:0], 1), (range(1, ROWS), OTHER_ROW, 0),
    (range(2, ROWS), OTHER_ROW[:0], 0), (range(ROWS - 1, -1, -1), OTHER_ROW[:0], 0),
    (range(ROWS), TABLE.features[4:5], 1),
], ids=["one came", "one went", "one in place of another", "two went", "another order", "a copy came"])
def test_the_same_question_before_and_after_one_row_leaves_it_alone(
    rows: Sequence[int], more: np.ndarray, isolated: int
) -> None:
    door, later = open_gate(), of(TABLE, rows, more)
    admit(door, TABLE, all_rows(ROWS))
    copies = 2 if isolated and np.array_equal(more, TABLE.features[4:5]) else 1
    assert admit(door, later, all_rows(len(later)), LATER) == isolated * copies
    careful = ExposureGate(ExposureRecord(None), SitePolicy())
    admit(careful, TABLE, all_rows(ROWS))
    if isolated:
        with pytest.raises(Refusal, match=r"differences of answers would isolate [12] of"):
            admit(careful, later, all_rows(len(later)), LATER)


def test_a_row_whose_class_or_part_changed_is_left_alone_too() -> None:
    door, changed = open_gate(), all_rows(ROWS)
    changed[7] = -changed[7]
    admit(door, TABLE, all_rows(ROWS))
    relabelled = replace(TABLE, classes=np.where(np.arange(ROWS) == 7, 1 - TABLE.classes, TABLE.classes))
    assert admit(door, relabelled, changed, LATER) == 1


def some(number: int, count: int) -> np.ndarray:
    """Coefficients by chance."""
    return np.random.default_rng([21, number]).uniform(size=count) / count


@pytest.mark.parametrize("scale", [1.0, 1e-13])
def test_pairs_are_held_to_all_vectors_of_other_versions_and_differences_to_the_last_ones(scale: float) -> None:
    """However small they are: slopes of a logistic loss are, where all rows lie far on the right side."""
    later = of(TABLE, range(ROWS), OTHER_ROW)

    def told(door: ExposureGate, train: Part, vector: np.ndarray, run: str = RUN) -> int:
        return admit(door, train, scale * vector, run)

    for between, expected in ((0, 1), (DEPTH + 8, 0)):
        door, first, second = open_gate(), some(1, ROWS), some(2, ROWS)
        for number in range(DEPTH + 8):
            told(door, TABLE, some(200 + number, ROWS))
        told(door, TABLE, all_rows(ROWS))
        for vector in (first, second, *(some(number, ROWS) for number in range(3, 3 + between))):
            told(door, TABLE, vector)
        base = some(99, ROWS + 1)
        fourth = (ROWS + 1) * base + np.append(ROWS * (first - second), 1.0)
        assert told(door, later, base, LATER) == 0
        assert told(door, later, fourth / (ROWS + 1), LATER) == expected
        assert told(door, later, all_rows(ROWS + 1), LATER) == 1, "however long ago"


def ranged(high: float, values: np.ndarray, more: tuple[Feature, ...] = ()) -> Part:
    """Readings held to a contract whose sensors reach so high, after some that are held out."""
    values = np.vstack([np.random.default_rng(len(values)).uniform(size=(5, 3)), values])
    features = (*(Feature(name=f"x{k}", unit="bar", low=0, high=high) for k in range(3)), *more)
    asset_type = AssetType(name="rig", features=features, fault_classes=(
        FaultClass(name="ok", severity=0), FaultClass(name="leak", severity=1),
    ))
    labels = tuple(("ok", "leak")[row % 2] for row in range(len(values)))
    values = np.column_stack([values, np.full((len(values), len(more)), np.nan)])
    return build_dataset(RawTable(values, labels, np.arange(len(values)) < 5, str), asset_type).train


@pytest.mark.parametrize(("high", "more"), [
    (1.0, ()), (1.0 + 1e-9, ()), (1.5, ()),
    (1.0, (Feature(name="a_new", unit="bar", low=0, high=1, required=False),)),
])
def test_another_contract_makes_no_other_rows_of_the_same_readings(high: float, more: tuple[Feature, ...]) -> None:
    door, values = open_gate(), TABLE.features
    admit(door, ranged(1.0, values), all_rows(ROWS))
    later = ranged(high, np.vstack([values, OTHER_ROW]), more)
    assert admit(door, later, all_rows(ROWS + 1), LATER) == 1


def test_a_row_that_went_counts_where_rows_of_the_table_are_alike() -> None:
    door, twice = open_gate(), of(TABLE, [*range(ROWS), 3])
    admit(door, twice, all_rows(ROWS + 1))
    assert admit(door, of(twice, range(1, ROWS + 1)), all_rows(ROWS), LATER) == 1


def test_it_is_held_to_after_a_restart_and_when_the_version_itself_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "exposure.sqlite"
    admit(open_gate(path), TABLE, all_rows(ROWS))
    for number in range(VERSIONS_KEPT + 1):
        apart = Part(np.random.default_rng([9, number]).uniform(size=(ROWS, 3)), TABLE.classes, TABLE.targets)
        admit(open_gate(path), apart, all_rows(ROWS), f"{number:032d}")
    with sqlite3.connect(path) as base:
        assert base.execute("SELECT count(*) FROM version").fetchall() == [(VERSIONS_KEPT,)]
    base.close()
    later = of(TABLE, range(ROWS), OTHER_ROW)
    assert admit(open_gate(path), later, all_rows(ROWS + 1), LATER) == 1


def test_vectors_of_a_forgotten_version_go_when_enough_came_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exposure_record, "SKETCHES_KEPT", 2)
    monkeypatch.setattr(exposure_record, "VERSIONS_KEPT", 1)
    monkeypatch.setattr(exposure_record, "FORGET_EVERY", 2)
    door, path = open_gate(tmp_path / "exposure.sqlite"), tmp_path / "exposure.sqlite"
    admit(door, TABLE, all_rows(ROWS))
    later = of(TABLE, range(ROWS), OTHER_ROW)
    for number in range(5):
        admit(door, later, np.random.default_rng(number).uniform(size=ROWS + 1), LATER)
    assert admit(open_gate(path), later, all_rows(ROWS + 1), LATER) == 0


def test_vectors_of_earlier_agents_say_nothing_of_other_versions(tmp_path: Path) -> None:
    path = tmp_path / "exposure.sqlite"
    admit(open_gate(path), TABLE, all_rows(ROWS), kind=0.25)
    with sqlite3.connect(path) as base:
        ((numbers,),) = base.execute("SELECT numbers FROM sketch").fetchall()
        base.execute("UPDATE sketch SET numbers = ?", (numbers[: 12 * 8] + numbers[-8:],))
        base.execute("DROP TABLE known_row")
    base.close()
    record = ExposureRecord(path)
    ((digest,),) = record._rows("SELECT digest FROM version")
    kept = record.stored(digest, ROWS).sketches
    assert kept.shape == (1, len(numbers) // 8) and kept[0, -1] == 0.25 and not kept[0, 12:-1].any()
    assert [len(each) for each in told_of_rows(kept)] == [0, 0]
    later = of(TABLE, range(ROWS), OTHER_ROW)
    assert admit(open_gate(path), later, all_rows(ROWS + 1), LATER) == 0


@pytest.mark.parametrize("name", ["level-bundle", "fdr-sm"])
@pytest.mark.parametrize("asleep", [False, True])
def test_two_honest_runs_between_which_a_row_came_show_no_row(
    name: str, asleep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if asleep:
        monkeypatch.setattr(OtherVersions, "pairs", lambda *_: set())
        monkeypatch.setattr(OtherVersions, "differences", lambda *_: set())
    rng = np.random.default_rng(2)
    features = rng.uniform(size=(100, 4))
    labels = np.where(features @ rng.standard_normal(4) + 0.3 * rng.standard_normal(100) > 0.0, 1.0, -1.0)
    found, (first, _) = found_between(dealt(features, labels, 2, get_method(name)), name, "per-site", max_rounds=3)
    assert (len(first.part) - 1 in found) if asleep else not found
    assert len(first.sent) == 3, "and nothing is refused"


def numbers_of(record: ExposureRecord) -> np.ndarray:
    return row_numbers(record.secret(), TABLE.marks)


def guarded(door: ExposureGate, train: Part, vectors: Sequence[np.ndarray], run: str) -> np.ndarray:
    """The first of some vectors over the rows that a guard under products lets out, admitted."""
    known = np.ones(len(train), dtype=bool)
    guard: VaultGuard = door.guard(train, known, few=3)
    found = guard.choose(str(vectors).encode(), lambda number, _: vectors[number], lambda each: [each])
    door.admit(train, known, run, RowAccount((found,)), guard.choices)
    return found


@pytest.mark.parametrize("restarted", [False, True])
def test_under_products_no_three_rows_that_came_are_told_by_themselves(tmp_path: Path, restarted: bool) -> None:
    path, rng = tmp_path / "exposure.sqlite", np.random.default_rng(4)
    door, first = ExposureGate(ExposureRecord(path), SitePolicy()), rng.uniform(size=ROWS)
    guarded(door, TABLE, [first / ROWS], RUN)
    three = of(TABLE, range(1, ROWS), rng.uniform(size=(2, 3)))
    same, other = np.append(first[1:], [0.7, 0.2]) / len(three), rng.uniform(size=len(three)) / len(three)
    later = ExposureGate(ExposureRecord(path), SitePolicy()) if restarted else door
    assert np.array_equal(guarded(later, three, [same, other], LATER), other)
    four = of(TABLE, range(2, ROWS), rng.uniform(size=(2, 3)))
    same = np.append(first[2:], [0.4, 0.1]) / len(four)
    assert np.array_equal(guarded(later, four, [same, other[1:]], LATER), same)


def test_what_was_told_under_products_is_kept_as_long_as_it_is_held_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exposure_record, "LATE", 3)
    monkeypatch.setattr(exposure_record, "FORGET_EVERY", 2)
    record = ExposureRecord(tmp_path / "exposure.sqlite")
    door = ExposureGate(record, SitePolicy())
    for number in range(5):
        guarded(door, TABLE, [some(number, ROWS)], RUN)
    assert [np.isclose(each, ROWS * some(2 + number, ROWS)).all() for number, each in enumerate(
        late_vectors(np.arange(ROWS), record.rows(numbers_of(record)).names, record.late()).vectors
    )] == [True] * 3


def test_a_refusal_does_not_make_the_plant_forget_what_it_told_under_products() -> None:
    door = ExposureGate(ExposureRecord(None), SitePolicy())
    guarded(door, TABLE, [all_rows(ROWS)], RUN)
    with pytest.raises(Refusal):
        admit(door, TABLE, np.eye(ROWS)[3])
    two, other = all_rows(ROWS), np.random.default_rng(4).uniform(size=ROWS) / ROWS
    two[:2] = 0.0
    assert np.array_equal(guarded(door, TABLE, [two, other], RUN), other)
