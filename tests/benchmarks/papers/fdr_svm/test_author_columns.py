"""ADMM-SC in the authors' settings, the service's own columns, and Table 5: what they do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.contracts.plans.plan import Plan
from tests.benchmarks.papers.fdr_svm import choice
from tests.benchmarks.papers.fdr_svm.catalogue import COLUMNS
from tests.benchmarks.papers.fdr_svm.cells import Job, append_row, run_cells
from tests.benchmarks.papers.fdr_svm.choice import Grid
from tests.benchmarks.papers.fdr_svm.columns import admm_reg
from tests.benchmarks.papers.fdr_svm.ours_against import against, verdict
from tests.benchmarks.papers.fdr_svm.ours_against import table as table_against
from tests.benchmarks.papers.fdr_svm.printed import PRINTED_TABLE_5, admm_points
from tests.benchmarks.papers.fdr_svm.service_columns import AS_IT_COMES, TUNES_ITSELF
from tests.benchmarks.papers.fdr_svm.table1 import jobs
from tests.benchmarks.papers.fdr_svm.table5 import compared, one_sided, stored, table
from tests.benchmarks.papers.fdr_svm.test_fdr_svm import number, small_split


def test_the_code_fits_admm_sc_without_its_term(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was chosen with tau = 18 rho is fitted as plain ADMM; as printed it keeps the term, and so it does here."""
    data, grid = small_split(), Grid(rounds=(3,), rhos=(0.1,), folds=1)
    sites = choice.sites_of(data, np.ones(80, dtype=bool), 10.0, 1.0)
    plain, strong = (list(admm_points(sites, 0.1, tau, 3))[-1] for tau in (0.0, 1.8))
    assert np.linalg.norm(strong) < 0.9 * np.linalg.norm(plain)
    scores, judge = [], choice.judge

    def heard(data: Any, found: Any, *rest: Any) -> Any:
        scores.append(found)
        return judge(data, found, *rest)

    monkeypatch.setattr(choice, "judge", heard)
    COLUMNS["ADMM-SC, code's tau"](data, grid)
    COLUMNS["ADMM-SC"](data, grid)
    admm_reg(data, grid)
    np.testing.assert_allclose(scores[0], data.test_features @ plain, atol=1e-9)
    np.testing.assert_allclose(scores[1], data.test_features @ strong, atol=1e-9)
    trusting = choice.sites_of(data, np.ones(80, dtype=bool), 10.0, np.inf)
    np.testing.assert_allclose(scores[2], data.test_features @ list(admm_points(trusting, 0.1, 0.0, 3))[-1], atol=1e-9)


def test_the_service_columns_are_a_plans_own_method_and_terms() -> None:
    data = small_split()
    plain, tuned = COLUMNS[AS_IT_COMES](data, Grid()), COLUMNS[TUNES_ITSELF](data, Grid())
    plan = Plan(name="plan", asset_type="table")
    assert plan.tuning is None and plan.method == "cohort-bundle"
    for cell in (plain, tuned):
        assert cell.gap <= plan.gap
        assert cell.f1 > 0.8
    assert '"tuning_rounds": 0' in plain.tuned and '"tuning_rounds": 0' not in tuned.tuned


def test_table_5_tells_who_is_better_and_on_how_many_pairs() -> None:
    rows = [
        {"set": "UKM", "column": column, "repetition": str(r), "f1": base + 0.001 * r * (1 + spread)}
        for column, base, spread in (
            ("SM", 0.70, 0), ("ADMM", 0.85, 0),
            ("FedSGD, code's settings", 0.80, 1), ("FedAvg, code's settings", 0.86, 1),
        )
        for r in range(6)
    ]
    found = {(row["set"], row["rival"]): row for row in compared(rows)}
    assert found["UKM", "FedSGD"]["best"] == "ADMM"
    assert found["UKM", "FedSGD"]["rejected"] is True and found["UKM", "FedSGD"]["p_value"] == 2.0**-6
    assert found["UKM", "FedAvg"]["rejected"] is False and found["UKM", "FedAvg"]["pairs"] == 6
    assert found["Rice", "FedSGD"]["p_value"] is None
    assert one_sided([0.0, 0.0]) == 1.0
    lucky = {"set": "UKM", "column": "ADMM-SC", "repetition": "0", "f1": 0.99}
    assert next(row for row in compared([*rows, lucky]) if row["pairs"])["best"] == "ADMM"
    few = [row for row in compared([row for row in rows if row["repetition"] < "4"]) if row["pairs"]]
    assert few and all(row["rejected"] is None for row in few)
    assert table(compared([row for row in rows if row["repetition"] < "4"])).count("too few pairs") == 2
    text = table(list(found.values()))
    assert "reject (0.0156, n 6)" in text and text.count("printed") == len(PRINTED_TABLE_5)


def test_quick_cells_are_not_mixed_with_those_of_the_full_run(tmp_path: Path) -> None:
    full, fast = tmp_path / "cells.csv", tmp_path / "cells-quick.csv"
    for state, column, repetition, f1 in (
        (full, "SM", "0", 0.9), (fast, "SM", "1", 0.5), (fast, "ADMM", "0", 0.6), (fast, "ADMM", "1", 0.7),
    ):
        append_row(state, {"set": "UKM", "column": column, "repetition": repetition, "f1": f1})
    assert [(row["column"], row["f1"]) for row in stored([full, fast])] == [("SM", 0.9), ("ADMM", 0.6), ("ADMM", 0.7)]


def test_tests_of_ours_are_told_in_both_directions() -> None:
    rows = [
        {"set": chosen, "column": column, "repetition": str(r), "f1": f1 + 0.001 * r * (column == AS_IT_COMES)}
        for column, chosen, f1 in (
            (AS_IT_COMES, "UKM", 0.9), ("FedAvg, code's settings", "UKM", 0.8), ("ADMM", "UKM", 0.97),
            (AS_IT_COMES, "Rice", 0.9), ("FedAvg, code's settings", "Rice", 0.91),
        )
        for r in range(20)
    ]
    found = {(row["against"], row["set"]): row for row in against([*rows, {**rows[0], "repetition": "77"}])}
    assert {key: (row["pairs"], verdict(row)) for key, row in found.items()} == {
        ("FedAvg, code's settings", "UKM"): (20, "better"), ("FedAvg, code's settings", "Rice"): (20, "level"),
        ("ADMM", "UKM"): (20, "worse"),
    }
    assert found["ADMM", "UKM"]["lead"] == pytest.approx(-0.07 + 0.0095)
    text = table_against(list(found.values()))
    assert "**-0.0605 (9.5e-07, n 20)**" in text and "level |" in text
    assert f"| rival | {AS_IT_COMES} | 1 | 1 | 0 |" in text


def test_repetitions_that_are_asked_for_are_those_of_every_column() -> None:
    assert len(jobs(True, ["UKM"], ["SM"])) == 5 and len(jobs(True, ["UKM"], ["mended and certified"])) == 10
    assert len(jobs(True, ["UKM"], ["SM"], 7)) == 7


def test_cells_of_an_older_form_are_refused(tmp_path: Path) -> None:
    state = tmp_path / "cells.csv"
    append_row(state, {"set": "UKM", "value": 1.0})
    with pytest.raises(ValueError, match="without the column seed; move it away"):
        run_cells([Job((("set", "UKM"), ("seed", "0")), number, (0.0,))], state, 1)
