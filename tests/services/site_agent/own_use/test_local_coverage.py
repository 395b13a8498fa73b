"""Sets of classes and intervals of a stated coverage, and estimates, at the plant as at the OEM."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.conformal.grid import score_grid
from models.conformal.spread import STEPS
from services.contracts.evaluation.calibration import Calibration, CountedRows, Spread
from services.contracts.evaluation.scores import ErrorInterval
from services.contracts.keys.signed_documents import signature_of
from services.contracts.machines.target import Target
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.predictor.estimator import Estimator
from services.predictor.predictor import Predictor
from services.site_agent.cli import main
from services.site_agent.own_use.local_predictor import CONFORMAL_HEADER, ESTIMATE_HEADER, HEADER, SETS_HEADER, diagnose
from services.site_agent.own_use.own_screen import scaled_measurements
from services.site_agent.own_use.sample_stream import diagnose_lines
from services.site_agent.settings import CsvSource


def test_a_calibrated_version_says_at_the_plant_what_it_says_at_the_oem(
    version: ModelVersion, oem: tuple[Path, str], tmp_path: Path, write_csv: Callable[..., Path], make_table: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    n, grid = 200, score_grid()
    held = {name: tuple(np.where(grid >= 0.5, n, n // 2) / (n + 1.0)) for name in ("error", "size", "reach")}
    found = Calibration(
        kind="sets", grid=tuple(grid.tolist()), groups=(CountedRows(n_test=n),), held=held, scale=1.5
    )
    calibrated = version.model_copy(update={"calibration": found, "signed_by": oem[1]})
    document = calibrated.to_document()
    path = tmp_path / "calibrated.json"
    path.write_text(json.dumps({**document, "signature": signature_of(document, oem[0])}))
    rows = [row[:3] for row in make_table(40)]
    ask = ["diagnose", "--model", str(path), "--input", str(write_csv(rows)), "--oem-key", oem[1]]
    assert main([*ask, "--coverage", "0.95"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == HEADER + SETS_HEADER
    samples = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
    numbers = [{name: float(cell) for name, cell in sample.items()} for sample in samples]
    expected = Predictor(calibrated).diagnose(samples, coverage=0.95)
    assert {len(each.class_set or ()) for each in expected} == {1, 2} and any(each.abstained for each in expected)
    assert [line.split(",", 4)[4] for line in lines[1:]] == [
        f"{' '.join(each.class_set or ())},0.95,{(each.probabilities or {})[each.fault_class]:.4g},"
        f"{'yes' if each.abstained else 'no'},{each.reason}"
        for each in expected
    ]
    columns = CsvSource(kind="csv", path=Path("-"))
    told = list(diagnose_lines(calibrated, [json.dumps(sample).encode() for sample in numbers], columns, 0.95))[:-1]
    assert [(each["class_set"], each["coverage"], each["abstained"], each["reason"]) for each in told] == [
        (list(each.class_set or ()), 0.95, each.abstained, each.reason) for each in expected
    ]
    likely = [(each.probabilities or {})[each.fault_class] for each in expected]
    assert [each["probability"] for each in told] == pytest.approx(likely, rel=1e-12)
    lines_file = tmp_path / "x.jsonl"
    lines_file.write_text(json.dumps(numbers[0]))
    assert main([*ask, "--coverage", "0.95", "--input", str(lines_file)]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0])["coverage"] == 0.95, "of a stream too"
    for wrong, said in (("0.999", "needs 999 held-out rows"), ("1.5", "coverage must lie between 0 and 1")):
        for form in ([], ["--json"]):
            assert main([*ask, *form, "--coverage", wrong]) == 1
            told_of = capsys.readouterr()
            assert said in told_of.err and told_of.out == "", "no header of a table that does not come"


def test_a_version_of_before_has_no_coverage_to_give(
    model_file: Path, oem: tuple[Path, str], write_csv: Callable[..., Path], make_table: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = write_csv([row[:3] for row in make_table(4)])
    ask = ["diagnose", "--model", str(model_file), "--input", str(path), "--oem-key", oem[1], "--coverage", "0.9"]
    assert main(ask) == 1 and "carries no calibration" in capsys.readouterr().err


def test_an_interval_by_the_estimate_is_at_the_plant_what_it_is_at_the_oem(
    version: ModelVersion, write_csv: Callable[..., Path], make_table: Any
) -> None:
    gap, grid, n = Target(name="gap", unit="mm", low=0.0, high=8.0), score_grid(), 200
    held = {"spread": tuple(np.where(np.arange(STEPS) >= 300, n / (n + 1.0), 0.0).tolist())}
    found = Calibration(
        kind="spread", grid=tuple(grid.tolist()), groups=(CountedRows(n_test=n),), held=held,
        spread=Spread(below=tuple(range(90, -10, -10)), above=tuple(range(0, 100, 10))),
    )
    spec = TrainingSpec.model_validate({"loss": {"name": "pinball", "quantile": 0.5}})
    fields = {name: getattr(version, name) for name in ModelVersion.model_fields}
    target = ModelVersion(**fields | {
        "spec": spec, "asset_type": version.asset_type.model_copy(update={"target": gap}), "calibration": found,
        "weights": np.array([[0.5, 0.3, 0.1, 0.05]]),
        "error_interval": ErrorInterval.implied(spec.loss.loss, gap, 0.02, 0.9),
    })
    rows = [row[:3] for row in make_table(12)]
    measured = scaled_measurements(CsvSource(kind="csv", path=write_csv(rows)), target.asset_type)
    lines = list(diagnose(target, measured.features))
    assert lines[0] == ESTIMATE_HEADER + CONFORMAL_HEADER
    expected = Estimator(target).estimate([dict(zip(rows[0], row, strict=True)) for row in rows[1:]])
    told = [line.split(",")[6:9] for line in lines[1:]]
    intervals = [each.conformal for each in expected]
    assert told == [[f"{each.low:.6g}", f"{each.high:.6g}", "0.9"] for each in intervals if each is not None]
    assert len({round(each.high - each.low, 4) for each in intervals if each is not None}) > 2


@pytest.mark.parametrize("calibrated", [False, True])
def test_an_estimate_and_its_intervals_are_cut_to_the_targets_range_as_the_oem_cuts_them(
    version: ModelVersion, make_table: Any, calibrated: bool
) -> None:
    gap, grid = Target(name="gap", unit="mm", low=1.0, high=8.0), score_grid()
    held = {"absolute": tuple((np.where(grid >= 0.3, 200, 100) / 201.0)[len(grid) // 2 :])}
    held |= {name: tuple(np.where(grid >= 1.0, 200, 100) / 201.0) for name in ("size", "reach")}
    found = Calibration(kind="absolute", grid=tuple(grid.tolist()), groups=(CountedRows(n_test=200),), held=held)
    spec = TrainingSpec.model_validate({"loss": {"name": "pinball", "quantile": 0.75}})
    fields = {name: getattr(version, name) for name in ModelVersion.model_fields}
    target = ModelVersion(**fields | {
        "spec": spec, "asset_type": version.asset_type.model_copy(update={"target": gap}),
        "weights": np.array([[3.0, 0.6, 0.2, -1.5]]), "calibration": found if calibrated else None,
        "error_interval": ErrorInterval.implied(spec.loss.loss, gap, 0.01, 0.9),
    })
    assert target.error_interval_at(0.9).below != target.error_interval_at(0.9).above
    rows = [dict(zip(make_table(1)[0][:3], map(float, row[:3]), strict=True)) for row in make_table(40)[1:]]
    columns = CsvSource(kind="csv", path=Path("-"))
    told = list(diagnose_lines(target, [json.dumps(row).encode() for row in rows], columns))[:-1]
    wanted = Estimator(target).estimate(rows)
    for name, values in (
        ("value", [each.value for each in wanted]), ("low", [each.interval.low for each in wanted]),
        ("high", [each.interval.high for each in wanted]),
        ("conformal_low", [each.conformal.low for each in wanted if each.conformal is not None]),
        ("conformal_high", [each.conformal.high for each in wanted if each.conformal is not None]),
    ):
        assert [each[name] for each in told if name in each] == pytest.approx(values, rel=1e-9)
        assert not values or {1.0, 8.0} & set(values), "some are cut"
    assert {each["unit"] for each in told} == {"mm"} and {each["confidence"] for each in told} == {0.9}
    if calibrated:
        assert [(each["abstained"], each["reason"]) for each in told] == [
            (each.abstained, each.reason) for each in wanted
        ]
