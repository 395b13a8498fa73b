"""How far readings have moved: measured in the plant, told where its policy says so, and never for chance."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import ks_2samp

from services.contracts.machines.asset_type import AssetType
from services.contracts.wire.messages import SiteUpdate
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.vault.drift import (
    BINS,
    DriftRecord,
    FirstRows,
    by_chance,
    distances,
    drift,
    drift_lines,
    shares_below,
)
from services.site_agent.vault.records.exposure_record import ExposureRecordError
from tests.services.site_agent.conftest import table

OPEN = {"tell_drift": True, "tell_exposure": True}


def first_of(rows: np.ndarray) -> FirstRows:
    return FirstRows("2026-01-01T00:00:00+00:00", len(rows), shares_below(rows))


@pytest.mark.parametrize("seed", range(10))
def test_the_distance_is_that_of_kolmogorov_and_smirnov_on_the_edges(seed: int) -> None:
    draw = np.random.default_rng(seed)
    before, after = draw.uniform(size=(40, 3)), draw.beta(2, 1 + seed % 3, size=(60, 3))
    found = distances(first_of(before), after)
    edged = [np.ceil(rows * BINS) / BINS for rows in (before, after)]
    expected = [ks_2samp(edged[0][:, p], edged[1][:, p]).statistic for p in range(3)]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_rows_of_one_law_hardly_ever_drift_and_moved_ones_do() -> None:
    draw = np.random.default_rng(1)
    told = [drift(first_of(draw.uniform(size=(50, 8))), draw.uniform(size=(80, 8))) for _ in range(500)]
    assert sum(each > 0 for each in told) <= 2
    before = draw.uniform(size=(200, 8))
    after = draw.uniform(size=(200, 8))
    after[:, 5] = 0.5 + 0.5 * after[:, 5]
    assert 0.4 < drift(first_of(before), after) < 0.6
    assert by_chance(first_of(before), 200) < by_chance(first_of(before), 20)
    alone = by_chance(first_of(before[:, :1]), 200)
    assert alone == pytest.approx((-np.log(1e-3 / 2) / 2 * (1 / 200 + 1 / 200)) ** 0.5)
    assert by_chance(first_of(before), 200) == pytest.approx((-np.log(1e-3 / 8 / 2) / 2 * (1 / 200 + 1 / 200)) ** 0.5)


def test_words_stand_below_one_another_beside_names_of_any_length() -> None:
    first = first_of(np.zeros((30, 2)))
    short, long = drift_lines(first, np.zeros((30, 2)), ["flow", "flow_" * 9])[1:]
    assert short.index("as before") == long.index("as before") and long.startswith("flow_" * 9 + " ")


def test_the_sensor_that_moved_most_comes_first_by_its_own_name() -> None:
    first, now = first_of(np.full((90, 3), 0.2)), np.full((90, 3), 0.2)
    now[:, 2] = 0.9
    now[:40, 1] = 0.9
    lines = drift_lines(first, now, ["flow", "speed", "load"])[1:]
    assert [line.split() for line in lines] == [
        ["load", "1.00", "has", "moved"], ["speed", "0.44", "has", "moved"], ["flow", "0.00", "as", "before"],
    ]


def test_later_rows_are_held_against_the_first_and_anew_where_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "exposure.sqlite"
    before, after = np.full((30, 2), 0.2), np.full((30, 2), 0.9)
    record = DriftRecord(path)
    assert record.first("pump") is None
    assert drift(record.begin("pump", before), before) == 0.0
    assert drift(record.begin("pump", after), after) == 1.0, "the first rows stay"
    record.close()
    record = DriftRecord(path)
    assert drift(record.begin("pump", after), after) == 1.0, "also after a restart"
    assert drift(record.begin("pump", after, anew=True), after) == 0.0
    record.close()
    record = DriftRecord(path)
    assert drift(record.begin("pump", before), after) == 0.0, "what began anew stays too"
    assert drift(record.begin("other", before), before) == 0.0, "of each contract its own"
    assert record.begin("pump", np.full((30, 3), 0.5)).shares.shape[0] == 3
    record.close()


@pytest.mark.parametrize(("rows", "shares"), [
    (0, np.ones(BINS).tobytes()), (-3, np.ones(BINS).tobytes()), (9, b"no shares"), (9, b""),
    (9, np.ones(BINS + 1).tobytes()), (9, np.full(BINS, np.nan).tobytes()), (9, np.full(BINS, 1.5).tobytes()),
    ("nine", np.ones(BINS).tobytes()), (9, None),
])
def test_a_damaged_record_is_said_in_one_line_and_begun_anew_where_that_is_asked(
    tmp_path: Path, rows: Any, shares: Any
) -> None:
    path, features = tmp_path / "exposure.sqlite", np.random.default_rng(1).uniform(size=(30, 1))
    with closing(DriftRecord(path)) as record:
        record.begin("sensors", features)
    with closing(sqlite3.connect(path)) as base, base:
        base.execute("DROP TABLE first_rows")
        base.execute("CREATE TABLE first_rows (contract TEXT PRIMARY KEY, began TEXT, rows, shares)")
        base.execute("INSERT INTO first_rows VALUES ('sensors', '2026-01-01', ?, ?)", (rows, shares))
    with closing(DriftRecord(path)) as record:
        for ask in (record.first, lambda sensors: record.begin(sensors, features)):
            with pytest.raises(ExposureRecordError, match=r"first rows, .*sqlite, fails: it is damaged.*--from-now"):
                ask("sensors")
        assert drift(record.begin("sensors", features, anew=True), features) == 0.0
        assert record.first("sensors") is not None


def test_a_record_that_fails_is_said_in_one_line_and_begins_nothing_anew(tmp_path: Path) -> None:
    path = tmp_path / "exposure.sqlite"
    record = DriftRecord(path)
    record.begin("pump", np.full((30, 2), 0.2))
    record.close()
    with closing(sqlite3.connect(path)) as base, base:
        base.execute("ALTER TABLE first_rows RENAME COLUMN shares TO gone")
    record = DriftRecord(path)
    for ask in (lambda: record.first("pump"), lambda: record.begin("pump", np.full((30, 2), 0.9))):
        with pytest.raises(ExposureRecordError, match="the record of the first rows, .*exposure.sqlite, fails"):
            ask()
    record.close()


@pytest.mark.parametrize("looking", [False, True])
def test_a_file_that_is_no_record_is_said_to_be_none(tmp_path: Path, looking: bool) -> None:
    path = tmp_path / "exposure.sqlite"
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(ExposureRecordError, match="the record of the first rows, .*exposure.sqlite, fails"):
        DriftRecord(path, looking=looking)


def joined(site: Any, run: int) -> SiteUpdate:
    answer = site.ask(run_id=f"{run:032x}", round=0)
    assert isinstance(answer, SiteUpdate), answer
    return answer


def test_a_join_tells_both_figures_where_the_policy_says_so(
    make_site: Callable[..., Any], policy: SitePolicy, write_csv: Callable[..., Path]
) -> None:
    site = make_site(policy=policy.model_copy(update=OPEN))
    told = joined(site, 1)
    assert (told.drift, told.exposed) == (0.0, 0.0)
    header, *rows = table(100)
    write_csv([header, *([min(row[0] + 25.0, 100.0), *row[1:]] for row in rows)], "site/data.csv")
    later = joined(site, 2)
    assert later.drift is not None and later.drift > 0.2
    line = json.loads((site.folder / "ledger.jsonl").read_text().splitlines()[-1])
    assert (line["drift"], line["exposed"]) == (later.drift, 0.0), "in the ledger, as it left"


def test_a_fault_class_more_forgets_no_drift_and_another_range_begins_anew(
    make_site: Callable[..., Any], policy: SitePolicy, write_csv: Callable[..., Path], three_classes: AssetType
) -> None:
    """A class that the OEM added made it 0, no more than chance, at a plant whose readings had moved."""
    site = make_site(policy=policy.model_copy(update=OPEN))
    assert joined(site, 1).drift == 0.0
    header, *rows = table(100)
    write_csv([header, *([min(row[0] + 25.0, 100.0), *row[1:]] for row in rows)], "site/data.csv")
    site.restarted(asset_type=three_classes)
    moved = joined(site, 2).drift
    assert moved is not None and moved > 0.2
    flow, *others = three_classes.features
    wider = (flow.model_copy(update={"high": flow.high + 1.0}), *others)
    site.restarted(asset_type=three_classes.model_copy(update={"features": wider}))
    assert joined(site, 3).drift == 0.0


def test_first_rows_that_are_kept_by_the_whole_contract_are_held_against_too(tmp_path: Path) -> None:
    """By an agent of before; whoever looks only, and the next join, find them."""
    record = DriftRecord(tmp_path / "exposure.sqlite")
    before, after = np.full((30, 2), 0.2), np.full((30, 2), 0.9)
    record.begin("pump with two classes", before)
    found = record.first("sensors", "pump with two classes")
    assert found is not None and drift(found, after) == 1.0 and record.first("sensors") is None
    assert drift(record.begin("sensors", after, "pump with two classes"), after) == 1.0
    assert drift(record.begin("sensors", after, "pump with three classes"), after) == 1.0, "kept by the sensors now"
    record.close()


@pytest.mark.parametrize("named", ["tell_drift", "tell_exposure"])
def test_what_the_policy_does_not_tell_is_not_in_the_message(
    make_site: Callable[..., Any], policy: SitePolicy, named: str
) -> None:
    silent = make_site(folder="silent")
    assert (joined(silent, 1).drift, joined(silent, 1).exposed) == (None, None)
    line = (silent.folder / "ledger.jsonl").read_text()
    assert "drift" not in line and "exposed" not in line
    half = joined(make_site(folder="half", policy=policy.model_copy(update={named: True})), 1)
    assert [half.drift is not None, half.exposed is not None] == [named == "tell_drift", named == "tell_exposure"]
